/** From redlock-universal 0.8 to `@locks/core` on the same Redis. */
import { createLocks } from '@locks/core';
import { redisBackend } from '@locks/redis-ioredis';
import type { Redis } from 'ioredis';
import { createLock, IoredisAdapter } from 'redlock-universal';
import type { RunLocked } from './run-locked.ts';

export function before(redis: Redis): RunLocked {
  const adapter = new IoredisAdapter(redis);
  return (name, work) => {
    const lock = createLock({ adapter, key: name, ttl: 5_000, retryAttempts: 1_000, retryDelay: 20 });
    return lock.using(async () => work());
  };
}

/** Without a prefix the keys are those of `before`: processes with either exclude each other. */
export function after(redis: Redis): RunLocked {
  const locks = createLocks(redisBackend(redis, { prefix: '' }), { ttlMs: 5_000, waitMs: 20_000 });
  return (name, work) => locks.lock(name).run(work);
}
