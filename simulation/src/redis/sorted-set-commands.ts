import type { CommandContext, CommandTable } from './command.ts';
import { formatDouble, readBound, readDouble, readInteger } from './numbers.ts';
import { SimulatedRedisError } from './reply.ts';
import { type ScoredMember, SortedSet } from './sorted-set.ts';

export const sortedSetCommands: CommandTable = {
  ZADD: { least: 3, isWrite: true, run: zadd },
  ZREM: { least: 2, isWrite: true, run: zrem },
  ZSCORE: {
    least: 2,
    most: 2,
    run: (context, [key = '', member = '']) => {
      const score = membersOf(context, key)?.score(member);
      return score === undefined ? null : formatDouble(score);
    },
  },
  ZCARD: { least: 1, most: 1, run: (context, [key = '']) => membersOf(context, key)?.size ?? 0 },
  ZCOUNT: {
    least: 3,
    most: 3,
    run: (context, [key = '', min = '', max = '']) => range(context, key, min, max).length,
  },
  ZRANGEBYSCORE: { least: 3, run: zrangeByScore },
};

function membersOf({ keyspace, now }: CommandContext, key: string): SortedSet | undefined {
  return keyspace.read(key, 'zset', now)?.members;
}

/** Of the options, `NX`: never changes the score of a member that is there; and `LT`: only to a lower one. */
function zadd({ keyspace, now }: CommandContext, [key = '', ...rest]: readonly string[]): number {
  const option = rest[0]?.toUpperCase();
  const hasOption = option === 'NX' || option === 'LT';
  const pairs = hasOption ? rest.slice(1) : rest;
  if (pairs.length === 0 || pairs.length % 2 === 1) throw new SimulatedRedisError('ERR syntax error');
  const added: (readonly [member: string, score: number])[] = [];
  for (let at = 0; at < pairs.length; at += 2) {
    added.push([pairs[at + 1] as string, readDouble(pairs[at] as string)]);
  }
  let members = keyspace.change(key, 'zset', now)?.members;
  if (members === undefined) {
    members = new SortedSet();
    keyspace.put(key, { type: 'zset', members });
  }
  const before = members.size;
  for (const [member, score] of added) {
    const current = members.score(member);
    if (current === undefined || !hasOption || (option === 'LT' && score < current))
      members.set(member, score);
  }
  return members.size - before;
}

function zrem({ keyspace, now }: CommandContext, [key = '', ...names]: readonly string[]): number {
  const members = keyspace.change(key, 'zset', now)?.members;
  if (members === undefined) return 0;
  const removed = names.filter((name) => members.delete(name)).length;
  if (members.size === 0) keyspace.delete(key);
  return removed;
}

function zrangeByScore(
  context: CommandContext,
  [key = '', min = '', max = '', ...options]: readonly string[],
): readonly string[] {
  let withScores = false;
  let offset = 0;
  let count = Infinity;
  for (let at = 0; at < options.length; at++) {
    const option = options[at]?.toUpperCase();
    if (option === 'WITHSCORES') withScores = true;
    else if (option === 'LIMIT' && at + 2 < options.length) {
      offset = readInteger(options[++at] as string);
      count = readInteger(options[++at] as string);
    } else throw new SimulatedRedisError('ERR syntax error');
  }
  const found = range(context, key, min, max).slice(offset, count < 0 ? undefined : offset + count);
  return found.flatMap(({ member, score }) => (withScores ? [member, formatDouble(score)] : [member]));
}

function range(context: CommandContext, key: string, min: string, max: string): readonly ScoredMember[] {
  const low = readBound(min);
  const high = readBound(max);
  const all = membersOf(context, key)?.ordered() ?? [];
  return all.filter(
    ({ score }) =>
      (low.isOpen ? score > low.score : score >= low.score) &&
      (high.isOpen ? score < high.score : score <= high.score),
  );
}
