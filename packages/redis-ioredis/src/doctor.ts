import type { Diagnosis } from '@locks/core/doctor';
import { examineRedisThrough } from '@locks/redis-protocol/doctor';
import type { IoredisClient } from './check-client.ts';
import { portOf } from './ioredis-port.ts';

// setup: import { examineRedis } from '@locks/redis-ioredis/doctor'; import { Redis } from 'ioredis';
/**
 * Examines the masters that the client reaches: memory, persistence, replication, connections, clocks. Nothing is written.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad client; errors of the client as they are
 * @example
 * ```ts
 * const { findings } = await examineRedis(new Redis());
 * for (const { severity, id, what } of findings) console.warn(severity, id, what);
 * ```
 */
export async function examineRedis(client: IoredisClient): Promise<Diagnosis> {
  return await examineRedisThrough(portOf(client));
}
