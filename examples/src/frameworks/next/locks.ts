/** Next.js, `lib/locks.ts`: one manager for the process. Development reloads modules, and the bundler may load one twice. */
import { createLocks, type FencedLockManager } from '@locks/core';
import { redisBackend } from '@locks/redis-ioredis';
import { Redis } from 'ioredis';

interface Shared {
  readonly redis: Redis;
  readonly locks: FencedLockManager;
}

const perProcess = globalThis as { lockedShop?: Shared };

/** Made at the first request, not while the application is built. */
export function shared(): Shared {
  if (perProcess.lockedShop === undefined) {
    const redis = new Redis(process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379');
    perProcess.lockedShop = { redis, locks: createLocks(redisBackend(redis), { waitMs: 20_000 }) };
  }
  return perProcess.lockedShop;
}
