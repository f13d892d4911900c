import { type Channel, channel } from 'node:diagnostics_channel';
import type { LossReason } from './backend/types.ts';

/** What every message has. Times are in milliseconds. */
export interface LockEvent {
  readonly resource: string;
  readonly backend: string;
  readonly acquisitionId: string;
}

/**
 * Channel names of `node:diagnostics_channel` and what is published on them. Nothing is built where nobody listens.
 *
 * @example
 * ```ts
 * import { subscribe } from 'node:diagnostics_channel';
 * subscribe('locks:lost', (message) => console.error('lock lost', message));
 * ```
 */
export interface LockEvents {
  /** A lease was granted; `waitedMs` since the call. */
  'locks:acquired': LockEvent & { readonly waitedMs: number; readonly fencingToken: bigint | undefined };
  /** The first answer was that someone else holds it or waits before us. */
  'locks:contended': LockEvent;
  /** An acquire ended with an error: its time was over, it was aborted or closed, or the store refused. */
  'locks:gave-up': LockEvent & { readonly waitedMs: number; readonly error: unknown };
  'locks:released': LockEvent & { readonly heldMs: number };
  'locks:lost': LockEvent & { readonly heldMs: number; readonly reason: LossReason };
  /** A renewal got no clear answer; it is tried again until the lease's end. */
  'locks:renewal-failed': LockEvent & { readonly remainingMs: number; readonly error: unknown };
  /** A release got no answer, or the lease was lost before: reported by `run` and by disposal, which do not throw it. */
  'locks:release-failed': LockEvent & { readonly error: unknown };
  /** An id that was given up could not be taken out of the store: it ends there by itself after at most its ttl. */
  'locks:abandon-failed': LockEvent & { readonly error: unknown };
  /** Held for more than twice its ttl without `maxHoldMs`; once per lease. */
  'locks:slow-hold': LockEvent & { readonly heldMs: number; readonly ttlMs: number };
}

const channels = new Map<string, Channel>();

function channelOf(name: string): Channel {
  let found = channels.get(name);
  if (found === undefined) channels.set(name, (found = channel(name)));
  return found;
}

const acquired = channelOf('locks:acquired');
const released = channelOf('locks:released');

/** For the two hot events: whether building a message is worth while. */
export function acquiredIsWatched(): boolean {
  return acquired.hasSubscribers;
}

export function releasedIsWatched(): boolean {
  return released.hasSubscribers;
}

export function publish<Name extends keyof LockEvents>(name: Name, message: LockEvents[Name]): void {
  const target = channelOf(name);
  if (target.hasSubscribers) target.publish(message);
}
