import type { LockBackend } from '@locks/core/backend';
import { type NodeRedisClient, nodeRedisPort } from '@locks/redis-node/port';
import type { RedissonCapabilities } from './capabilities.ts';
import type { RedissonBackendOptions } from './options.ts';
import { createRedissonBackend } from './redisson-backend.ts';

export type { NodeRedisClient } from '@locks/redis-node/port';
export type { RedissonCapabilities } from './capabilities.ts';
export type { RedissonBackendOptions } from './options.ts';

// setup: import { createLocks } from '@locks/core'; import { redissonBackend } from '@locks/redisson/redis'; import { createClient } from 'redis';
/**
 * The locks of Redisson through a client of the package `redis`: `createClient`, `createSentinel` or `createCluster`. Java's `getLock(name)` and this lock exclude
 * each other. Does no I/O; the client stays yours, and waiting opens one more connection (in a cluster one to each master that is
 * waited at), which `close` ends.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for what is not a usable client of `redis`, and for bad options
 *
 * @example
 * ```ts
 * const locks = createLocks(redissonBackend(await createClient().connect()), { ttlMs: 30_000 });
 * ```
 */
export function redissonBackend(
  client: NodeRedisClient,
  options: RedissonBackendOptions & { readonly fencing: true },
): LockBackend<RedissonCapabilities<'volatile'>>;
export function redissonBackend(
  client: NodeRedisClient,
  options?: RedissonBackendOptions & { readonly fencing?: false },
): LockBackend<RedissonCapabilities<'none'>>;
export function redissonBackend(
  client: NodeRedisClient,
  options?: RedissonBackendOptions,
): LockBackend<RedissonCapabilities>;
export function redissonBackend(
  client: NodeRedisClient,
  options?: RedissonBackendOptions,
): LockBackend<RedissonCapabilities> {
  return createRedissonBackend(nodeRedisPort(client), options);
}
