import { invalidArgument } from './invalid-argument.ts';
import { checkPrefix } from './keys.ts';

export interface RedisBackendOptions {
  /** Stands before every name in Redis. All clients that share locks use the same one. @defaultValue `'lock:'` */
  readonly prefix?: string;
  /**
   * For how long a lock that was handed to a waiter is kept for it until it is heard of: what a frozen waiter costs
   * those behind it, at most. @defaultValue `2000`
   */
  readonly claimMs?: number;
  /** How often a process with waiters looks after them, in one batched call. @defaultValue `1000` */
  readonly checkIntervalMs?: number;
  /** How many replicas must have a grant before it is told (standalone and Sentinel). @defaultValue `0` */
  readonly minReplicas?: number;
  /** How long to wait for those replicas. @defaultValue `1000` */
  readonly replicaTimeoutMs?: number;
}

export interface Settings {
  readonly prefix: string;
  readonly claimMs: number;
  readonly checkIntervalMs: number;
  readonly minReplicas: number;
  readonly replicaTimeoutMs: number;
}

function integer(
  options: RedisBackendOptions,
  name: keyof RedisBackendOptions,
  fallback: number,
  least: number,
  most: number,
): number {
  const value: unknown = options[name] ?? fallback;
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
  throw invalidArgument(`${name} is ${String(value)}: use a whole number from ${least} to ${most}`);
}

const known = ['prefix', 'claimMs', 'checkIntervalMs', 'minReplicas', 'replicaTimeoutMs'];

export function settle(options: RedisBackendOptions, keyPrefix: string, cluster: boolean): Settings {
  if (typeof options !== 'object' || options === null) {
    throw invalidArgument(`options is ${String(options)}: pass an object or nothing`);
  }
  for (const name of Object.keys(options)) {
    if (!known.includes(name))
      throw invalidArgument(`option ${name} does not exist: there are ${known.join(', ')}`);
  }
  const minReplicas = integer(options, 'minReplicas', 0, 0, 100);
  if (minReplicas > 0 && cluster) {
    throw invalidArgument(
      `minReplicas is ${minReplicas}, but the client is a cluster: use it with a standalone or Sentinel client, or leave it out`,
    );
  }
  return {
    prefix: checkPrefix(keyPrefix + checkPrefix(options.prefix ?? 'lock:')),
    claimMs: integer(options, 'claimMs', 2000, 100, 60_000),
    checkIntervalMs: integer(options, 'checkIntervalMs', 1000, 50, 60_000),
    minReplicas,
    replicaTimeoutMs: integer(options, 'replicaTimeoutMs', 1000, 1, 60_000),
  };
}
