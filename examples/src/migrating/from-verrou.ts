/** From @verrou/core 0.5 to `@locks/core` on the same Redis. */
import { createLocks } from '@locks/core';
import { redisBackend } from '@locks/redis-ioredis';
import { Verrou } from '@verrou/core';
import { redisStore } from '@verrou/core/drivers/redis';
import type { Redis } from 'ioredis';
import type { RunLocked } from './run-locked.ts';

/** @param redis - a client of ioredis 5, which this library asks for */
export function before(redis: Redis): RunLocked {
  const driver = redisStore({ connection: redis });
  const verrou = new Verrou({ default: 'redis', stores: { redis: { driver } } });
  return async (name, work) => {
    const lock = verrou.createLock(name, 5_000);
    if (!(await lock.acquire())) throw new Error(`${name} is locked`);
    try {
      return await work();
    } finally {
      await lock.release();
    }
  };
}

export function after(redis: Redis): RunLocked {
  const locks = createLocks(redisBackend(redis), { ttlMs: 5_000, waitMs: 20_000 });
  return (name, work) => locks.lock(name).run(work);
}
