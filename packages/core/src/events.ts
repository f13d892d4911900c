import { shownId } from './acquire/acquisition-id.ts';
import {
  channel,
  subscribe,
  type TracingChannel,
  tracingChannel,
  unsubscribe,
} from 'node:diagnostics_channel';
import type { AcquireRequest, Holder, LockMode, LossReason } from './backend/types.ts';
import type { ChainMember } from './errors.ts';

/** The fields of every event but `locks:fence-rejected`, `locks:loop-blocked`, `locks:renewal-thread-stopped` and `locks:slot-ahead`. Times are milliseconds. */
export interface LockEvent {
  readonly name: string;
  /** The `name` of the backend. */
  readonly backend: string;
  /** The identity of the acquisition in the store. */
  readonly acquisitionId: string;
  /** The option `label` of the acquire. */
  readonly label: string | undefined;
  /** Exclusive, shared, or with permits. */
  readonly mode: LockMode;
}

/**
 * The events of all locks: channels of `node:diagnostics_channel` and their messages.
 *
 * @example
 * ```ts
 * import { subscribe } from 'node:diagnostics_channel';
 * subscribe('locks:lost', (message) => console.error('lock lost', message));
 * ```
 */
export interface LockEvents {
  /** A lease was granted, `waitedMs` after the call. */
  'locks:acquired': LockEvent & {
    readonly waitedMs: number;
    /** The token of the lease; `undefined` where the backend has none. */
    readonly fencingToken: bigint | undefined;
    /** The `acquisitionId` in `locks:contended` of the same acquire; `undefined` where there was none. */
    readonly contendedAs: string | undefined;
  };
  /** The first answer of the store, `waitedMs` after the call, was "busy": somebody holds the lock or waits before this acquire. */
  'locks:contended': LockEvent & {
    readonly waitedMs: number;
    /** Whether the acquire waits now; `false` for a single attempt, which has ended. */
    readonly waits: boolean;
    /** Asks the store who holds the lock, for at most 100 ms; `undefined` without an answer. Costs a call each time. */
    readonly lookUpHolders: () => Promise<readonly Holder[] | undefined>;
  };
  /** An acquire ended with an error: timeout, abort, a closed manager, or a failure of the store. */
  'locks:gave-up': LockEvent & {
    readonly waitedMs: number;
    readonly contendedAs: string | undefined;
    readonly error: unknown;
    /** The holders shortly before, where a `LOCK_TIMEOUT` names them. */
    readonly holders: readonly Holder[] | undefined;
    /** Who was waited for, as the `chain` of a `LOCK_TIMEOUT` says. */
    readonly chain: readonly ChainMember[] | undefined;
  };
  /** A lease was released. The release took `tookMs`; when it was sent, the lease had `remainingMs` left of `validForMs`. */
  'locks:released': LockEvent & { readonly heldMs: number; readonly tookMs: number } & ShareOfValidity;
  /** A lease was lost after `heldMs`. */
  'locks:lost': LockEvent & { readonly heldMs: number; readonly reason: LossReason };
  /**
   * The store confirmed a renewal. When its answer came, the lease had `remainingMs` left of `validForMs`; when it was sent, the event loop
   * had stood still for at least `blockedMs`, mostly 0.
   */
  'locks:renewed': LockEvent & ShareOfValidity & { readonly blockedMs: number };
  /** A renewal got no clear answer. It is repeated until the lease ends. */
  'locks:renewal-failed': LockEvent & { readonly remainingMs: number; readonly error: unknown };
  /** A release got no answer. The lease ends by its ttl. */
  'locks:release-failed': LockEvent & { readonly error: unknown };
  /** An abandoned acquisition could not be removed from the store. That is repeated until its ttl is over, when it ends there. */
  'locks:abandon-failed': LockEvent & { readonly error: unknown };
  /** A lease without `maxHoldMs` is held for more than 2 × ttl. Published once per lease. */
  'locks:slow-hold': LockEvent & { readonly heldMs: number; readonly ttlMs: number };
  /**
   * The event loop stood still, for at least `blockedMs`: a third of `ttlMs`, the shortest ttl of the `leases` that this manager held meanwhile,
   * or more. Published once for each block, when it is over. A machine that slept, or a clock set forward, looks the same.
   */
  'locks:loop-blocked': {
    readonly backend: string;
    readonly blockedMs: number;
    readonly ttlMs: number;
    readonly leases: number;
    /** The stack of what blocked it, as that of an error, from a renewal thread with `captureStack`; else `undefined`. */
    readonly stack: string | undefined;
  };
  /** A renewal thread ended by itself. The event loop has renewed its `leases` leases since then; none outlives a block any more. */
  'locks:renewal-thread-stopped': {
    readonly backend: string;
    readonly leases: number;
    readonly error: Error;
  };
  /**
   * The slot store of `once` has a slot that lies in the future, and keeps all machines from running the work until that slot is over:
   * `resetSlot` of `@locks/once` ends that.
   */
  'locks:slot-ahead': {
    /** The name of the work and of its lock. */
    readonly name: string;
    /** The slot of the call that did not run. */
    readonly slot: string;
    /** The recorded slot. */
    readonly recordedSlot: string;
    /** The machine that recorded it, as its `label` says. */
    readonly recordedBy: string;
  };
  /** A fenced write was refused: `target` has a newer token than `token`. */
  'locks:fence-rejected': {
    readonly backend: string;
    /** The key or the table. */
    readonly target: string;
    readonly token: bigint;
  };
}

interface ShareOfValidity {
  readonly remainingMs: number;
  /** The validity of the lease from its grant or last renewal, in milliseconds. */
  readonly validForMs: number;
}

/**
 * The message of the tracing channels `locks:acquire` (with `tryAcquire`), `locks:run` and `locks:release`. Node's `tracingChannel`
 * adds `result` and `error`.
 *
 * @example
 * ```ts
 * import { tracingChannel } from 'node:diagnostics_channel';
 * import type { LockTrace } from '@locks/core';
 * tracingChannel<unknown, LockTrace>('locks:run').start.subscribe((message) => console.log((message as LockTrace).name));
 * ```
 */
export interface LockTrace extends Omit<LockEvent, 'acquisitionId' | 'label'> {
  /** Whether the call waits where the lock is busy, on `locks:acquire` only. */
  readonly waits?: boolean | undefined;
  /** The token of the lease, on `locks:release` only. */
  readonly fencingToken?: bigint | undefined;
  /** The lease, on `locks:acquire`; `undefined` where `tryAcquire` found the lock busy. */
  readonly result?: unknown;
  readonly error?: unknown;
  /** Set by a subscriber of `start`: the call runs inside it, for example in the context of a span. */
  enter?: (<T>(call: () => T) => T) | undefined;
}

// setup: import { onLockEvent } from '@locks/core'; declare const logger: { error(what: object, text: string): void };
/**
 * Calls `listener` with every message of one event, from all managers of this process. A listener that throws ends the process,
 * as any uncaught error does.
 *
 * @returns a function that ends the subscription
 * @example
 * ```ts
 * const stop = onLockEvent('locks:lost', ({ name, reason }) => logger.error({ name, reason }, 'lock lost'));
 * stop();
 * ```
 */
export function onLockEvent<Name extends keyof LockEvents>(
  name: Name,
  listener: (event: LockEvents[Name]) => void,
): () => void {
  const receive = (message: unknown): void => listener(message as LockEvents[Name]);
  subscribe(name, receive);
  return () => void unsubscribe(name, receive);
}

/** The frequent events: their messages are built only where somebody listens. */
export const acquiredChannel = channel('locks:acquired');
export const contendedChannel = channel('locks:contended');
export const releasedChannel = channel('locks:released');
export const renewedChannel = channel('locks:renewed');

export const acquireTracing = tracingChannel<unknown, LockTrace>('locks:acquire');
export const runTracing = tracingChannel<unknown, LockTrace>('locks:run');
export const releaseTracing = tracingChannel<unknown, LockTrace>('locks:release');

/** Makes a call, and tells the subscribers of a tracing channel. Callers check first that there are some. */
export function traced<T>(
  channel: TracingChannel<unknown, LockTrace>,
  message: LockTrace,
  call: () => Promise<T>,
): Promise<T> {
  return channel.tracePromise(() => (message.enter === undefined ? call() : message.enter(call)), message);
}

/** The fields that identify an acquisition in every event. */
export function identityOf(
  { resource, acquisitionId, label, mode }: AcquireRequest,
  backend: string,
): LockEvent {
  // Whoever listens may read the id, and must not be able to adopt by it (docs/spec.md §19.2).
  return { name: resource, backend, acquisitionId: shownId(acquisitionId), label, mode };
}

export function publish<Name extends keyof LockEvents>(name: Name, message: LockEvents[Name]): void {
  channel(name).publish(message);
}
