import { afterAll, beforeAll } from 'vitest';
import type { RedisServer } from '../redis/redis-server.ts';
import { startRedis } from '../redis/start-redis.ts';

/** The server of a test file that calls {@link useRedis}. */
export let redis: RedisServer;

/** Starts a server before the tests of a file, and stops it after them. */
export function useRedis(): void {
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());
}

let count = 0;
/** A name that no other test of the file uses. */
export const fresh = (): string => `resource-${++count}`;
