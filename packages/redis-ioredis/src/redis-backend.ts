import type { LockBackend } from '@locks/core/backend';
import { createRedisBackend, type RedisBackendOptions, type RedisCapabilities } from '@locks/redis-protocol';
import type { Cluster, Redis } from 'ioredis';
import { checkClient, type IoredisClient } from './check-client.ts';
import { IoredisPort } from './ioredis-port.ts';

export type { IoredisClient } from './check-client.ts';

// setup: import { createLocks } from '@locks/core'; import { redisBackend } from '@locks/redis-ioredis'; import { Redis } from 'ioredis';
/**
 * Locks in Redis through an ioredis client: standalone, Sentinel or Cluster. Does no I/O; the client stays yours, and
 * waiting opens one more connection (in a cluster one to each master that is waited at), which `close` ends.
 *
 * @throws `LOCK_INVALID_ARGUMENT` for what is not a usable ioredis client, and for bad options.
 *
 * @example
 * ```ts
 * const locks = createLocks(redisBackend(new Redis()), { ttlMs: 30_000 });
 * ```
 */
export function redisBackend(
  client: IoredisClient,
  options?: RedisBackendOptions,
): LockBackend<RedisCapabilities> {
  checkClient(client);
  return createRedisBackend(new IoredisPort(client as unknown as Redis | Cluster), options);
}
