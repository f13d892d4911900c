import { type LockBackend, optional, type OptionTable, readOptions, wholeNumber } from '@locks/core/backend';
import { createRedisBackend, readPrefix, type RedisCapabilities } from '@locks/redis-protocol';
import { CONNECTION_TABLE, refuseClients, type UpstashConnection } from './connection.ts';
import { UpstashPort } from './upstash-port.ts';

/** The options of the backend on Upstash. */
export interface UpstashBackendOptions {
  /**
   * The prefix of all lock keys: up to 128 characters that end with `:` and have no `::`. All clients that share locks use the same
   * one; locks with different prefixes have nothing in common. @defaultValue `'lock:'`
   */
  readonly prefix?: string;
  /**
   * The longest pause between two looks of a process that waits, in milliseconds, 50 to 60 000: it asks for all its waiters together, and a
   * free lock waits half of this time for it on average. A process that asked nothing for three times as long is passed over.
   * @defaultValue `500`
   */
  readonly maxPollMs?: number;
}

const TABLE = {
  prefix: optional(readPrefix, 'lock:'),
  maxPollMs: optional(wholeNumber(50, 60_000), 500),
} satisfies OptionTable<UpstashBackendOptions>;

// setup: import { createLocks } from '@locks/core'; import { upstashBackend } from '@locks/upstash';
/**
 * Locks in a Redis database of Upstash over its REST API. Does no I/O. Nobody tells a waiter of its turn: it asks, twice a second by
 * default, once for all waiters of the process.
 *
 * @param database - its REST address and its token
 * @throws LockError `LOCK_INVALID_ARGUMENT` for bad arguments, and for a client in their place
 *
 * @example
 * ```ts
 * const url = process.env['UPSTASH_REDIS_REST_URL'] ?? '';
 * const token = process.env['UPSTASH_REDIS_REST_TOKEN'] ?? '';
 * const locks = createLocks(upstashBackend({ url, token }), { ttlMs: 30_000 });
 * ```
 */
export function upstashBackend(
  database: UpstashConnection,
  options?: UpstashBackendOptions,
): LockBackend<RedisCapabilities> {
  const caller = 'upstashBackend()';
  refuseClients(database);
  const connection = readOptions(caller, database, CONNECTION_TABLE, SECOND);
  return createRedisBackend(new UpstashPort(connection), readOptions(caller, options, TABLE, FIRST));
}

/** Where an option belongs that stands in the wrong argument. */
const FIRST = { url: 'the first argument', token: 'the first argument', fetch: 'the first argument' };
const SECOND = { prefix: 'the second argument', maxPollMs: 'the second argument' };
