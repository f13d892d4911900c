import { type OnceRecord, textRecord } from '@locks/once';
import { fencedSet } from '@locks/redis-ioredis';
import type { RedisOptions } from 'ioredis';
import type { RedisClient } from '../redis-client.ts';

const DEFAULT_PREFIX = 'lock:';
const TIMES = { connectTimeout: 5_000, commandTimeout: 10_000, maxRetriesPerRequest: 3 };

/**
 * The record under the key `once:<job>`, as in the recipe of docs/once-per-slot.md. With another prefix than that of most
 * locks, the key is `once|<prefix>|<job>`, since that prefix has its own tokens. Each call has a connection of its own: a job
 * may take hours between two.
 */
export function redisRecord(
  connect: (options: RedisOptions) => RedisClient,
  prefix = DEFAULT_PREFIX,
): OnceRecord {
  const keyOf = (key: string): string =>
    prefix === DEFAULT_PREFIX ? key : `once|${prefix}|${key.slice('once:'.length)}`;
  const use = async <T>(work: (client: RedisClient) => Promise<T>): Promise<T> => {
    const client = connect(TIMES);
    client.on('error', () => undefined);
    try {
      return await work(client);
    } finally {
      client.disconnect();
    }
  };
  return textRecord({
    get: (key) => use((client) => client.get(keyOf(key))),
    set: (key, value, token) => use((client) => fencedSet(client, keyOf(key), value, token)),
  });
}
