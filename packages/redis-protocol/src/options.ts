import { mustBe, oneOf, optional, type OptionTable, readOptions, wholeNumber } from '@locks/core/backend';
import { readPrefix } from './keys.ts';

/** The options of the backends on Redis. */
export interface RedisBackendOptions {
  /**
   * The prefix of every name in Redis, 0 to 128 characters. All clients that share locks use the same one.
   *
   * Without a prefix (`''`) a lock key is the bare name, as that of redlock. Then every key of the database may be a lock: a name
   * that is another string's key is held until that key goes, `forceRelease` and `steal` delete that string, and `list` reads
   * every string and shows those that are ours or waited for. Use it to share locks with another library, on a database of locks.
   * @defaultValue `'lock:'`
   */
  readonly prefix?: string;
  /**
   * The interval at which a process checks its waiters, in one batched request, in milliseconds. A process that sent none for
   * three times as long is passed over when its turn comes. @defaultValue `1000`
   */
  readonly checkIntervalMs?: number;
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
  readonly prefix: string;
  readonly checkIntervalMs: number;
  readonly minReplicas: number;
  readonly replicaTimeoutMs: number;
  readonly functions: boolean;
}

const TABLE = {
  prefix: optional(readPrefix, 'lock:'),
  checkIntervalMs: optional(wholeNumber(50, 60_000), 1_000),
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
  const keyed = readPrefix(keyPrefix + prefix, 'redisBackend(): prefix behind the key prefix of the client');
  return { prefix: keyed, minReplicas, ...others };
}
