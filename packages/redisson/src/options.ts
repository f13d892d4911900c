import { oneOf, optional, type OptionTable, readOptions, text, wholeNumber } from '@locks/core/backend';

/** The options of the backend. */
export interface RedissonBackendOptions {
  /**
   * Stands directly before the name of every lock, as a `NameMapper` of Redisson puts it there. Java calls the lock `prefix` + name. Of
   * two prefixes of which one begins the other, some names are the same lock.
   * At most 128 characters without control characters. @defaultValue `''`
   */
  readonly prefix?: string;
  /**
   * Whether the locks are those of `getFencedLock`: each lease has a fencing token from the counter that Redisson uses.
   * @defaultValue `false`
   */
  readonly fencing?: boolean;
  /**
   * The longest pause between two looks of a waiter that no message wakes, in milliseconds, 50 to 60 000: one request for each name that
   * this process waits for. @defaultValue `1000`
   */
  readonly maxPollMs?: number;
  /**
   * In a cluster, the option of the same name in Redisson's configuration: `auto`, sharded channels where the server has them.
   * Outside of clusters Redisson uses plain channels always. @defaultValue `'auto'`
   */
  readonly shardedSubscriptionMode?: 'auto' | 'on' | 'off';
}

export interface CheckedRedissonOptions {
  readonly prefix: string;
  readonly fencing: boolean;
  readonly maxPollMs: number;
  readonly shardedSubscriptionMode: 'auto' | 'on' | 'off';
}

const TABLE = {
  prefix: optional(
    text('at most 128 characters without control characters', /^[^\p{Cc}\p{Cs}]{0,128}$/u),
    '',
  ),
  fencing: optional(oneOf(true, false), false),
  maxPollMs: optional(wholeNumber(50, 60_000, 'milliseconds'), 1_000),
  shardedSubscriptionMode: optional(oneOf('auto', 'on', 'off'), 'auto'),
} satisfies OptionTable<RedissonBackendOptions>;

/** Reads the options, and puts the key prefix of the client in front of their prefix. */
export function checkOptions(
  options: RedissonBackendOptions | undefined,
  keyPrefix: string,
): CheckedRedissonOptions {
  const { prefix, ...others } = readOptions('redissonBackend()', options, TABLE);
  return { prefix: keyPrefix + prefix, ...others };
}
