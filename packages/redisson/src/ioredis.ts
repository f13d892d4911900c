import type { LockBackend } from '@locks/core/backend';
import { type IoredisClient, ioredisPort } from '@locks/redis-ioredis/port';
import type { RedissonCapabilities } from './capabilities.ts';
import type { RedissonBackendOptions } from './options.ts';
import { createRedissonBackend } from './redisson-backend.ts';

export type { IoredisClient } from '@locks/redis-ioredis/port';
export type { RedissonCapabilities } from './capabilities.ts';
export type { RedissonBackendOptions } from './options.ts';

// setup: import { createLocks } from '@locks/core'; import { redissonBackend } from '@locks/redisson/ioredis'; import { Redis } from 'ioredis';
/**
 * The locks of Redisson through an ioredis client: standalone, Sentinel or Cluster. Java's `getLock(name)` and this lock exclude
 * each other. Does no I/O; the client stays yours, and waiting opens one more connection (in a cluster one to each master that is
 * waited at), which `close` ends.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for what is not a usable ioredis client, and for bad options
 *
 * @example
 * ```ts
 * const locks = createLocks(redissonBackend(new Redis()), { ttlMs: 30_000 });
 * ```
 */
export function redissonBackend(
  client: IoredisClient,
  options: RedissonBackendOptions & { readonly fencing: true },
): LockBackend<RedissonCapabilities<'volatile'>>;
export function redissonBackend(
  client: IoredisClient,
  options?: RedissonBackendOptions & { readonly fencing?: false },
): LockBackend<RedissonCapabilities<'none'>>;
export function redissonBackend(
  client: IoredisClient,
  options?: RedissonBackendOptions,
): LockBackend<RedissonCapabilities>;
export function redissonBackend(
  client: IoredisClient,
  options?: RedissonBackendOptions,
): LockBackend<RedissonCapabilities> {
  return createRedissonBackend(ioredisPort(client), options);
}
