import { type LockBackend, optional, type OptionTable, readOptions, wholeNumber } from '@locks/core/backend';
import { createRedisBackend, readPrefix, type RedisCapabilities } from '@locks/redis-protocol';
import { CONNECTION_TABLE, refuseClients, type UpstashConnection } from './connection.ts';
import { UpstashPort } from './upstash-port.ts';

/** The options of the backend on Upstash. */
export interface UpstashBackendOptions extends UpstashConnection {
  /** The prefix of every name in Redis. All clients that share locks use the same one. @defaultValue `'lock:'` */
  readonly prefix?: string;
  /**
   * The interval at which a process that waits asks for all its waiters together, in milliseconds, from 50 to 60 000: the mean time
   * that a free lock waits for a waiter here is half of it. A process that asked nothing for three times as long is passed over.
   * @defaultValue `500`
   */
  readonly checkIntervalMs?: number;
}

const TABLE = {
  ...CONNECTION_TABLE,
  prefix: optional(readPrefix, 'lock:'),
  checkIntervalMs: optional(wholeNumber(50, 60_000), 500),
} satisfies OptionTable<UpstashBackendOptions>;

// setup: import { createLocks } from '@locks/core'; import { upstashBackend } from '@locks/upstash';
/**
 * Locks in a Redis database of Upstash over its REST API. Does no I/O. Nobody tells a waiter of its turn: it asks, twice a second by
 * default, once for all waiters of the process.
 *
 * @throws `LOCK_INVALID_ARGUMENT` for bad options, and for a client in their place.
 *
 * @example
 * ```ts
 * const url = process.env['UPSTASH_REDIS_REST_URL'] ?? '';
 * const token = process.env['UPSTASH_REDIS_REST_TOKEN'] ?? '';
 * const locks = createLocks(upstashBackend({ url, token }), { ttlMs: 30_000 });
 * ```
 */
export function upstashBackend(options: UpstashBackendOptions): LockBackend<RedisCapabilities> {
  refuseClients(options);
  const { prefix, checkIntervalMs, ...connection } = readOptions('upstashBackend()', options, TABLE);
  return createRedisBackend(new UpstashPort(connection), { prefix, checkIntervalMs });
}
