import type { SlotStore } from '@locks/once';
import { redisSlots } from '@locks/redis-ioredis';
import type { RedisOptions } from 'ioredis';
import type { RedisClient } from '../redis-client.ts';

const TIMES = { connectTimeout: 5_000, commandTimeout: 10_000, maxRetriesPerRequest: 3 };

/** The slot store of `@locks/redis-ioredis`. Each call has a connection of its own: work may take hours between two. */
export function redisSlotsAt(
  connect: (options: RedisOptions) => RedisClient,
  prefix: string | undefined,
): SlotStore {
  const use = async <T>(work: (slots: SlotStore) => Promise<T>): Promise<T> => {
    const client = connect(TIMES);
    client.on('error', () => undefined);
    try {
      return await work(redisSlots(client, { prefix }));
    } finally {
      client.disconnect();
    }
  };
  return {
    read: (name) => use((slots) => slots.read(name)),
    write: (name, entry) => use((slots) => slots.write(name, entry)),
  };
}
