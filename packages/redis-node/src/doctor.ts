import type { Diagnosis } from '@locks/core/doctor';
import { examineRedisThrough } from '@locks/redis-protocol/doctor';
import type { NodeRedisClient } from './clients.ts';
import { portOf } from './node-redis-port.ts';

// setup: import { examineRedis } from '@locks/redis-node/doctor'; import { createClient } from 'redis';
/**
 * Examines the masters that the client reaches: memory, persistence, replication, connections, clocks. Nothing is written.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad client; errors of the client as they are
 * @example
 * ```ts
 * const { findings } = await examineRedis(await createClient().connect());
 * for (const { severity, id, what } of findings) console.warn(severity, id, what);
 * ```
 */
export async function examineRedis(client: NodeRedisClient): Promise<Diagnosis> {
  return await examineRedisThrough(portOf(client));
}
