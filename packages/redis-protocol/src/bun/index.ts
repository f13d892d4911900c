import type { LockBackend } from '@locks/core/backend';
import { createRedisBackend, type RedisCapabilities } from '../backend.ts';
import type { RedisBackendOptions } from '../options.ts';
import { type BunRedisClient, BunRedisPort, checkBunClient } from './bun-redis-port.ts';

export type { RedisCapabilities } from '../backend.ts';
export type { RedisBackendOptions } from '../options.ts';
export type { BunRedisClient } from './bun-redis-port.ts';

// setup: import { createLocks } from '@locks/core'; import { type BunRedisClient, redisBackend } from '@locks/redis-protocol/bun';
// setup: declare const client: BunRedisClient;
/**
 * Locks in Redis through a client of Bun: `new Bun.RedisClient(…)` or `Bun.redis`. The backend makes clients with the same
 * settings, one for commands and one for messages, which `close` ends; until then the second one keeps the process alive.
 *
 * @throws `LOCK_INVALID_ARGUMENT` for what is no client of Bun, and for bad options.
 *
 * @example
 * ```ts
 * const locks = createLocks(redisBackend(client), { ttlMs: 30_000 });
 * ```
 */
export function redisBackend(
  client: BunRedisClient,
  options?: RedisBackendOptions,
): LockBackend<RedisCapabilities> {
  checkBunClient(client);
  return createRedisBackend(new BunRedisPort(client), options);
}
