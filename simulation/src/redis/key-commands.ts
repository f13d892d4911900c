import { type CommandContext, type CommandTable, entryOf } from './command.ts';
import { readInteger } from './numbers.ts';
import { OK, StatusReply } from './reply.ts';

/** Commands on keys of any type. */
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
  FLUSHALL: {
    least: 0,
    most: 0,
    isWrite: true,
    run: ({ keyspace }) => {
      keyspace.clear();
      return OK;
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
