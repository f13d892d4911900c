import { randomUUID } from 'node:crypto';
import { type AcquireRequest, invalidArgument } from '@locks/core/backend';
import { slotOf } from '@locks/redis-protocol/kit';

/** The keys and the channel of a lock, named as Redisson names them. */
export interface RedissonKeys {
  /** A hash: the owner's field, and how often it holds. */
  readonly lock: string;
  /** Where the end of a hold is published. */
  readonly channel: string;
  /** The counter of fencing tokens. */
  readonly token: string;
  /** The cluster slot of the lock. */
  readonly slot: number;
}

export function keysOf(prefix: string, resource: string): RedissonKeys {
  const lock = prefix + resource;
  return {
    lock,
    channel: beside('redisson_lock__channel', lock),
    token: beside('redisson_lock_token', lock),
    slot: slotOfKey(lock),
  };
}

/** Redisson's `prefixName`: a brace anywhere in the name counts as a hash tag, also where it is none. */
function beside(what: string, lock: string): string {
  return lock.includes('{') ? `${what}:${lock}` : `${what}:{${lock}}`;
}

/** A name for the latch of one release: a command that the client sends again finds the outcome of its first sending there. */
export function freshLatch(lock: string): string {
  return `${beside('redisson_unlock_latch', lock)}:${randomUUID().replaceAll('-', '')}`;
}

/**
 * Refuses a name whose channel is in another slot of the cluster than its lock, because of its braces.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function refuseSplitName({ lock, channel, slot }: RedissonKeys): void {
  if (slotOfKey(channel) === slot) return;
  throw invalidArgument(
    `the lock ${JSON.stringify(lock)} has braces that Redisson cannot use in a cluster, since its channel is in another slot: ` +
      'use names without braces, or with a hash tag such as {shop}',
  );
}

/**
 * The field of an acquisition. Redisson writes `id:threadId`; an acquisition is an owner of its own, and its label takes the
 * place of the thread, so that operators who look at the hash see who holds.
 */
export function fieldOf({ acquisitionId, label = '' }: AcquireRequest): string {
  return `${acquisitionId}:${label}`;
}

/** The cluster slot of a key: that of its hash tag, if it has one. */
function slotOfKey(key: string): number {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open + 1);
  return slotOf(close > open + 1 ? key.slice(open + 1, close) : key);
}
