import type { LockBackend } from '@locks/core/backend';
import { createRedisBackend, type RedisBackendOptions, type RedisCapabilities } from '@locks/redis-protocol';
import { checkClient } from './check-client.ts';
import type { NodeRedisClient } from './clients.ts';
import { NodeRedisPort } from './node-redis-port.ts';

export type { NodeRedisClient } from './clients.ts';

// setup: import { createLocks } from '@locks/core'; import { redisBackend } from '@locks/redis-node'; import { createClient } from 'redis';
/**
 * Locks in Redis through a client of the package `redis`: `createClient`, `createSentinel` or `createCluster`. Does no
 * I/O; the client stays yours (connect it before the first lock), and waiting opens one more connection (in a
 * cluster one to each master that is waited at), which `close` ends.
 *
 * @throws `LOCK_INVALID_ARGUMENT` for what is not a usable client of `redis`, and for bad options.
 *
 * @example
 * ```ts
 * const client = await createClient().connect();
 * const locks = createLocks(redisBackend(client), { ttlMs: 30_000 });
 * ```
 */
export function redisBackend(
  client: NodeRedisClient,
  options?: RedisBackendOptions,
): LockBackend<RedisCapabilities> {
  return createRedisBackend(new NodeRedisPort(checkClient(client)), options);
}
