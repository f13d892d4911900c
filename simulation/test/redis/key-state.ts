import { formatDouble } from '../../src/redis/numbers.ts';
import type { SimulatedRedis } from '../../src/redis/simulated-redis.ts';
import type { SimulatedValue } from '../../src/redis/keyspace.ts';
import { textOf } from '../../src/redis/bytes.ts';

/** One key as a test writes it down: its value in order, and the milliseconds that are left, -1 for ever. */
export interface KeyState {
  readonly key: string;
  readonly type: string;
  readonly value: readonly string[];
  readonly left: number;
}

/** The whole keyspace of a simulated server, by key. */
export function statesOf(server: SimulatedRedis, now: number): readonly KeyState[] {
  const states = server.keys().flatMap((key): KeyState[] => {
    const entry = server.peek(key);
    if (entry === undefined) return [];
    const { value, expiresAt } = entry;
    const left = expiresAt === undefined ? -1 : expiresAt - now;
    return [{ key, type: value.type, value: partsOf(value).map(textOf), left }];
  });
  return states.sort((a, b) => (a.key < b.key ? -1 : 1));
}

function partsOf(value: SimulatedValue): readonly string[] {
  switch (value.type) {
    case 'string':
      return [value.text];
    case 'hash':
      return [...value.fields].flat();
    case 'zset':
      return value.members.ordered().flatMap(({ member, score }) => [member, formatDouble(score)]);
    default:
      return value satisfies never;
  }
}

/** The commands that make a keyspace what it was. */
export function commandsFor(states: readonly KeyState[]): string[][] {
  return states.flatMap(({ key, type, value, left }) => {
    const commands = [writeOf(type, key, value)];
    if (left >= 0) commands.push(['PEXPIRE', key, String(left)]);
    return commands;
  });
}

function writeOf(type: string, key: string, value: readonly string[]): string[] {
  switch (type) {
    case 'string':
      return ['SET', key, ...value];
    case 'hash':
      return ['HSET', key, ...value];
    case 'zset': {
      const pairs: string[] = [];
      for (let at = 0; at < value.length; at += 2) pairs.push(value[at + 1] as string, value[at] as string);
      return ['ZADD', key, ...pairs];
    }
    default:
      throw new TypeError(`no command writes a ${type}`);
  }
}
