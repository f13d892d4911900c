/** From redlock 5 to `@locks/core` on the same Redis. */
import { createLocks } from '@locks/core';
import { redisBackend } from '@locks/redis-ioredis';
import type { Redis } from 'ioredis';
import Redlock from 'redlock';
import type { RunLocked } from './run-locked.ts';

export function before(redis: Redis): RunLocked {
  const redlock = new Redlock([redis], { retryCount: 1_000, retryDelay: 20, retryJitter: 10 });
  return (name, work) => redlock.using([name], 5_000, async () => work());
}

export function after(redis: Redis): RunLocked {
  const locks = createLocks(redisBackend(redis), { ttlMs: 5_000, waitMs: 20_000 });
  return (name, work) => locks.lock(name).run(work);
}
