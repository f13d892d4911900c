import type { OnceRecord } from '@locks/once';
import { redisRecord } from '@locks/redis-ioredis';
import type { RedisOptions } from 'ioredis';
import type { RedisClient } from '../redis-client.ts';

const TIMES = { connectTimeout: 5_000, commandTimeout: 10_000, maxRetriesPerRequest: 3 };

/** The record of `@locks/redis-ioredis`. Each call has a connection of its own: a job may take hours between two. */
export function redisRecordAt(
  connect: (options: RedisOptions) => RedisClient,
  prefix: string | undefined,
): OnceRecord {
  const use = async <T>(work: (record: OnceRecord) => Promise<T>): Promise<T> => {
    const client = connect(TIMES);
    client.on('error', () => undefined);
    try {
      return await work(redisRecord(client, { prefix }));
    } finally {
      client.disconnect();
    }
  };
  return {
    read: (job) => use((record) => record.read(job)),
    write: (job, entry) => use((record) => record.write(job, entry)),
  };
}
