import type { Diagnosis } from '@locks/core/doctor';
import { examineRedisThrough } from '@locks/redis-protocol/doctor';
import { clientPort } from './glide-port.ts';
import type { ValkeyGlideClient } from './clients.ts';

// setup: import { examineRedis } from '@locks/redis-glide/doctor'; import { GlideClient } from '@valkey/valkey-glide'; declare const client: GlideClient;
/**
 * Examines the masters that the client reaches: memory, persistence, replication, connections, clocks. Nothing is written.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad client; errors of the client as they are
 * @example
 * ```ts
 * const { findings } = await examineRedis(client);
 * for (const { severity, id, what } of findings) console.warn(severity, id, what);
 * ```
 */
export async function examineRedis(client: ValkeyGlideClient): Promise<Diagnosis> {
  return await examineRedisThrough(clientPort(client));
}
