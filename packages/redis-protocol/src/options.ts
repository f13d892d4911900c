import { mustBe, oneOf, optional, type OptionTable, readOptions, wholeNumber } from '@locks/core/backend';
import { type LockKeys, lockKeys, readPrefix } from './keys.ts';

/** The options of the backends on Redis. */
export interface RedisBackendOptions {
  /**
   * The prefix of all lock keys: up to 128 characters that end with `:` and have no `::`. All clients that share locks use the same
   * one; locks with different prefixes have nothing in common.
   *
   * Without a prefix (`''`) a lock key is the bare name, as that of redlock. Then every key of the database may be a lock: a name
   * that is another string's key is held until that key goes, `forceRelease` and `steal` delete that string, and `list` reads
   * every string and shows those that are ours or waited for. Use it to share locks with another library, on a database of locks.
   * @defaultValue `'lock:'`
   */
  readonly prefix?: string;
  /**
   * The longest pause between two looks of a process that waits, in milliseconds, 50 to 60 000: one request for all its waiters, which also
   * tells that it lives. A process that sent none for three times as long is passed over when its turn comes. @defaultValue `1000`
   */
  readonly maxPollMs?: number;
  /** The number of replicas that must have a grant before `acquire` returns (standalone and Sentinel). @defaultValue `0` */
  readonly minReplicas?: number;
  /** The longest wait for `minReplicas` replicas, in milliseconds. @defaultValue `1000` */
  readonly replicaTimeoutMs?: number;
  /**
   * Whether Redis Functions take the place of scripts, for a user who may not run `EVAL` and `EVALSHA`: Redis 7 or newer. The library
   * is loaded when it is missing, by a user who may. @defaultValue `false`
   */
  readonly functions?: boolean;
}

export interface CheckedRedisOptions {
  /** The key prefix of the client, with the prefix of the locks behind it. */
  readonly prefix: string;
  readonly lockKeys: LockKeys;
  readonly maxPollMs: number;
  readonly minReplicas: number;
  readonly replicaTimeoutMs: number;
  readonly functions: boolean;
}

const TABLE = {
  prefix: optional(readPrefix, 'lock:'),
  maxPollMs: optional(wholeNumber(50, 60_000), 1_000),
  minReplicas: optional(wholeNumber(0, 100), 0),
  replicaTimeoutMs: optional(wholeNumber(1, 60_000), 1_000),
  functions: optional(oneOf(true, false), false),
} satisfies OptionTable<RedisBackendOptions>;

/** Reads the options, and puts the key prefix of the client in front of their prefix. */
export function checkOptions(
  options: RedisBackendOptions | undefined,
  keyPrefix: string,
  cluster: boolean,
): CheckedRedisOptions {
  const { prefix, minReplicas, ...others } = readOptions('redisBackend()', options, TABLE);
  if (minReplicas > 0 && cluster) {
    throw mustBe('redisBackend(): minReplicas', '0 with a cluster client', minReplicas);
  }
  const what = 'redisBackend(): prefix behind the key prefix of the client';
  return { prefix: keyPrefix + prefix, lockKeys: lockKeys(keyPrefix, prefix, what), minReplicas, ...others };
}
