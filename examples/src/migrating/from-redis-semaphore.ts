/** From redis-semaphore 5 to `@locks/core` on the same Redis. */
import { createLocks } from '@locks/core';
import { redisBackend } from '@locks/redis-ioredis';
import type { Redis } from 'ioredis';
import { Mutex } from 'redis-semaphore';
import type { RunLocked } from './run-locked.ts';

export function before(redis: Redis): RunLocked {
  return async (name, work) => {
    const mutex = new Mutex(redis, name, { lockTimeout: 5_000, acquireTimeout: 20_000 });
    await mutex.acquire();
    try {
      return await work();
    } finally {
      await mutex.release();
    }
  };
}

export function after(redis: Redis): RunLocked {
  const locks = createLocks(redisBackend(redis), { ttlMs: 5_000, waitMs: 20_000 });
  return (name, work) => locks.lock(name).run(work);
}
