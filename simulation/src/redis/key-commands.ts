import { type CommandContext, type CommandTable, entryOf } from './command.ts';
import { globToRegExp } from './glob.ts';
import { readInteger } from './numbers.ts';
import { OK, SimulatedRedisError, type SimulatedReply, StatusReply } from './reply.ts';

/** Commands on keys of any type, and those that put keys of types that locks never use. */
export const keyCommands: CommandTable = {
  DEL: {
    least: 1,
    isWrite: true,
    run: (context, keys) =>
      keys.filter((key) => entryOf(context, key) !== undefined && context.keyspace.delete(key)).length,
  },
  EXISTS: {
    least: 1,
    run: (context, keys) => keys.filter((key) => entryOf(context, key) !== undefined).length,
  },
  TYPE: {
    least: 1,
    most: 1,
    run: (context, [key = '']) => new StatusReply(entryOf(context, key)?.value.type ?? 'none'),
  },
  PTTL: {
    least: 1,
    most: 1,
    run: (context, [key = '']) => {
      const entry = entryOf(context, key);
      if (entry === undefined) return -2;
      return entry.expiresAt === undefined ? -1 : entry.expiresAt - context.now;
    },
  },
  PEXPIRE: {
    least: 2,
    most: 2,
    isWrite: true,
    run: (context, [key = '', ms = '']) => expireAt(context, key, context.now + readInteger(ms)),
  },
  PEXPIREAT: {
    least: 2,
    most: 2,
    isWrite: true,
    run: (context, [key = '', at = '']) => expireAt(context, key, readInteger(at)),
  },
  PERSIST: {
    least: 1,
    most: 1,
    isWrite: true,
    run: (context, [key = '']) => {
      const entry = entryOf(context, key);
      if (entry?.expiresAt === undefined) return 0;
      context.keyspace.expire(key, entry, undefined);
      return 1;
    },
  },
  SCAN: { least: 1, run: scan },
  DBSIZE: {
    least: 0,
    most: 0,
    run: (context) => context.keyspace.keys().filter((key) => entryOf(context, key) !== undefined).length,
  },
  FLUSHALL: {
    least: 0,
    most: 0,
    isWrite: true,
    run: ({ keyspace }) => {
      keyspace.clear();
      return OK;
    },
  },
  SADD: {
    least: 2,
    isWrite: true,
    run: ({ keyspace, now }, [key = '', ...added]) => {
      const members = keyspace.change(key, 'set', now)?.members ?? new Set<string>();
      const before = members.size;
      for (const member of added) members.add(member);
      if (before === 0) keyspace.put(key, { type: 'set', members });
      return members.size - before;
    },
  },
  RPUSH: {
    least: 2,
    isWrite: true,
    run: ({ keyspace, now }, [key = '', ...added]) => {
      const items = keyspace.change(key, 'list', now)?.items ?? [];
      const isNew = items.length === 0;
      items.push(...added);
      if (isNew) keyspace.put(key, { type: 'list', items });
      return items.length;
    },
  },
};

function expireAt(context: CommandContext, key: string, at: number): number {
  const entry = entryOf(context, key);
  if (entry === undefined) return 0;
  if (at <= context.now) context.keyspace.delete(key);
  else context.keyspace.expire(key, entry, at);
  return 1;
}

/** All keys in one page: a key that stays is found once, as Redis promises, and `COUNT` is a hint there too. */
function scan(context: CommandContext, [cursor = '', ...options]: readonly string[]): SimulatedReply {
  if (readInteger(cursor) !== 0) throw new SimulatedRedisError('ERR invalid cursor');
  let matches: RegExp | undefined;
  for (let at = 0; at < options.length; at += 2) {
    const option = options[at]?.toUpperCase();
    const value = options[at + 1];
    if (value === undefined) throw new SimulatedRedisError('ERR syntax error');
    if (option === 'MATCH') matches = globToRegExp(value);
    else if (option === 'COUNT') readInteger(value);
    else throw new SimulatedRedisError('ERR syntax error');
  }
  const keys = context.keyspace.keys().filter((key) => entryOf(context, key) !== undefined);
  return ['0', keys.filter((key) => matches?.test(key) ?? true)];
}
