import type { CommandContext, CommandTable } from './command.ts';
import { SimulatedRedisError } from './reply.ts';

export const hashCommands: CommandTable = {
  HGET: {
    least: 2,
    most: 2,
    run: (context, [key = '', field = '']) => fieldsOf(context, key)?.get(field) ?? null,
  },
  HEXISTS: {
    least: 2,
    most: 2,
    run: (context, [key = '', field = '']) => (fieldsOf(context, key)?.has(field) ? 1 : 0),
  },
  HLEN: { least: 1, most: 1, run: (context, [key = '']) => fieldsOf(context, key)?.size ?? 0 },
  HGETALL: {
    least: 1,
    most: 1,
    run: (context, [key = '']) => [...(fieldsOf(context, key) ?? [])].flat(),
  },
  HSET: { least: 3, isWrite: true, run: hset },
  HSETNX: {
    least: 3,
    most: 3,
    isWrite: true,
    run: (context, [key = '', field = '', value = '']) => {
      if (fieldsOf(context, key)?.has(field)) return 0;
      return hset(context, [key, field, value]);
    },
  },
  HDEL: { least: 2, isWrite: true, run: hdel },
};

function fieldsOf({ keyspace, now }: CommandContext, key: string): ReadonlyMap<string, string> | undefined {
  return keyspace.read(key, 'hash', now)?.fields;
}

function hset({ keyspace, now }: CommandContext, [key = '', ...pairs]: readonly string[]): number {
  if (pairs.length % 2 === 1) {
    throw new SimulatedRedisError("ERR wrong number of arguments for 'hset' command");
  }
  let fields = keyspace.change(key, 'hash', now)?.fields;
  if (fields === undefined) {
    fields = new Map();
    keyspace.put(key, { type: 'hash', fields });
  }
  const before = fields.size;
  for (let at = 0; at < pairs.length; at += 2) fields.set(pairs[at] as string, pairs[at + 1] as string);
  return fields.size - before;
}

function hdel({ keyspace, now }: CommandContext, [key = '', ...names]: readonly string[]): number {
  const fields = keyspace.change(key, 'hash', now)?.fields;
  if (fields === undefined) return 0;
  const removed = names.filter((name) => fields.delete(name)).length;
  if (fields.size === 0) keyspace.delete(key);
  return removed;
}
