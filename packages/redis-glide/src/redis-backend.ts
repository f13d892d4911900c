import type { LockBackend } from '@locks/core/backend';
import { createRedisBackend, type RedisBackendOptions, type RedisCapabilities } from '@locks/redis-protocol';
import { checkClient } from './check-client.ts';
import type { ValkeyGlideClient } from './clients.ts';
import { portOf } from './glide-port.ts';

export type { ValkeyGlideClient } from './clients.ts';

// setup: import { createLocks } from '@locks/core'; import { redisBackend } from '@locks/redis-glide'; import { GlideClient } from '@valkey/valkey-glide';
/**
 * Locks in Valkey or Redis through a client of `@valkey/valkey-glide`: `GlideClient` or `GlideClusterClient`. Does no I/O; the
 * client stays yours, and waiting opens one more client with its configuration, which `close` ends.
 *
 * @throws `LOCK_INVALID_ARGUMENT` for what is not a usable client of GLIDE, and for bad options.
 *
 * @example
 * ```ts
 * const client = await GlideClient.createClient({ addresses: [{ host: 'localhost', port: 6379 }] });
 * const locks = createLocks(redisBackend(client), { ttlMs: 30_000 });
 * ```
 */
export function redisBackend(
  client: ValkeyGlideClient,
  options?: RedisBackendOptions,
): LockBackend<RedisCapabilities> {
  return createRedisBackend(portOf(checkClient(client)), options);
}
