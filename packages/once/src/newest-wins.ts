import { createHash } from 'node:crypto';
import {
  type AcquireOptions,
  type BackendCapabilities,
  type BaseLease,
  isLockError,
  type Lease,
  type Lock,
  LockError,
  type LockManager,
} from '@locks/core';
import {
  abortSignal,
  MAX_TIMEOUT_MS,
  milliseconds,
  optional,
  type OptionTable,
  OWN_LOCK,
  OWN_NAMES,
  readOptions,
  text,
  wholeNumber,
} from '@locks/core/backend';
import { checkCall } from './check-call.ts';
import { releaseQuietly } from './release-quietly.ts';
import { runSignal } from './run-signal.ts';

/** Options of {@link newestWins}: as those of `run`. All times are milliseconds. */
export type NewestWinsOptions = Pick<AcquireOptions, 'ttlMs' | 'waitMs' | 'label' | 'signal'>;

/**
 * The ttl of the seat of the newest: a waiter that stands still for longer loses it. Core renews it at a third of that, and a waiter of another
 * process learns then that a newer one has taken it.
 */
const SEAT_TTL_MS = 10_000;
const MAX_NAME_BYTES = 512;

const TABLE = {
  // Core reads these again, with the limits of the backend.
  ttlMs: optional(wholeNumber(1, MAX_TIMEOUT_MS, 'milliseconds')),
  waitMs: optional(milliseconds(0, Number.POSITIVE_INFINITY)),
  label: optional(text('a string', /^/)),
  signal: optional(abortSignal),
} satisfies OptionTable<NewestWinsOptions>;

/** The newest waiter of this process, by manager and name. */
const waiting = new WeakMap<object, Map<string, LocalWaiter>>();

interface LocalWaiter {
  /** The token of its seat: the order in which the store gave the seats. */
  readonly token: bigint;
  readonly supersede: () => void;
}

// setup: import { isLockError, type LockManager } from '@locks/core'; import { newestWins } from '@locks/once';
// setup: declare const locks: LockManager; declare function save(text: string): Promise<void>; declare const text: string;
/**
 * Runs the work under the lock, as `run` does, where of those that wait only the newest one counts: a call ends the wait of older calls
 * of the same name, over all processes, with `LOCK_SUPERSEDED`. Who works already works on. For a save, an index that is built anew, a
 * search while the user types: the newest call sees all that older ones would have seen.
 *
 * The newest waiter has a seat, a lock of its own, which the next one steals. When its turn comes, a waiter works only if the store says that it still has the seat: so no work begins after the work of a newer call has begun (docs/spec.md §7.10).
 *
 * @param name - the name of the lock
 * @throws LockError `LOCK_SUPERSEDED` when a newer call has come: at once in the same process, elsewhere within four seconds or when the turn
 * comes; `LOCK_LOST` when the seat was lost in another way, so that nobody knows whether a newer call has come: the work did not run, or as `run`
 * throws it; `LOCK_UNSUPPORTED` on a backend without the feature `steal` or without a queue; `LOCK_TIMEOUT`, `LOCK_INVALID_ARGUMENT` and the codes
 * of `run`. What the work throws, and the reason of `signal`, as they are
 * @example
 * ```ts
 * try {
 *   await newestWins(locks, 'document:42', () => save(text));
 * } catch (error) {
 *   if (!isLockError(error, 'LOCK_SUPERSEDED')) throw error;
 * }
 * ```
 */
export async function newestWins<T, L extends BaseLease = Lease>(
  locks: Pick<LockManager<L>, 'lock' | 'capabilities'>,
  name: string,
  work: (lease: L) => T | Promise<T>,
  options?: NewestWinsOptions,
): Promise<T> {
  checkCall('newestWins', locks, name, work);
  const { ttlMs, waitMs, label, signal } = readOptions('newestWins()', options, TABLE);
  const lock = locks.lock(name, { ttlMs, waitMs, label });
  assertSupported(locks.capabilities, name);
  const seatTtlMs = Math.max(SEAT_TTL_MS, locks.capabilities.ttl.minMs);
  const times = { ttlMs: seatTtlMs, renewal: 'auto', maxHoldMs: Number.MAX_SAFE_INTEGER, label } as const;
  const seatOptions = { ...times, [OWN_LOCK]: true };
  const { seat, isStolen } = await takeSeat(locks.lock(seatOf(name), seatOptions), signal);
  /** Until when an older waiter may still have to learn from the store that the seat was stolen: it renews its own by then. */
  const keepUntil = isStolen ? performance.now() + seatTtlMs / 2 : 0;
  const superseded = new AbortController();
  const leave = waitHere(locks, name, seat.fencingToken, () => superseded.abort(supersededError(name)));
  const wait = runSignal([seat.signal, superseded.signal]);
  // What ends the wait alone does not abort the signal of the work: who works already works on.
  const run = runSignal([wait.signal, signal]);
  let begun = false;
  try {
    return await lock.run(
      async (lease) => {
        // The store says whether a newer call has taken the seat; a release would not tell why it is lost.
        await seat.renew();
        // A newer call that takes the seat from here on comes after this one, and ends it no more.
        wait.end();
        if (!isStolen) await releaseQuietly(seat);
        lease.assertValid();
        run.signal.throwIfAborted();
        begun = true;
        return work(lease);
      },
      { signal: run.signal },
    );
  } catch (error) {
    throw begun ? error : reasonOf(error, name);
  } finally {
    wait.end();
    run.end();
    leave();
    await leaveSeat(seat, keepUntil);
  }
}

/** The name of the seat: no lock of an application has it, and every name has another one. */
function seatOf(name: string): string {
  const whole = `${OWN_NAMES}newest:${name}`;
  if (Buffer.byteLength(whole) <= MAX_NAME_BYTES) return whole;
  return `${OWN_NAMES}newest#${createHash('sha256').update(name).digest('base64url')}`;
}

/** Takes the seat, and tells whether it was taken from another waiter, as far as is known. */
async function takeSeat(
  lock: Lock<BaseLease>,
  signal: AbortSignal | undefined,
): Promise<{ readonly seat: Lease; readonly isStolen: boolean }> {
  const free = await lock.tryAcquire({ signal }).catch((error: unknown) => {
    // The steal asks a store that fails again.
    if (isLockError(error, 'LOCK_BACKEND')) return undefined;
    throw error;
  });
  if (free !== undefined) return { seat: free, isStolen: false };
  return { seat: await lock.acquire({ steal: true, signal }), isStolen: true };
}

/**
 * Releases the seat, in the background where it was stolen: an older waiter that found it free would not know whether it was stolen, or
 * released by force. A process that exits leaves the seat to its ttl.
 */
async function leaveSeat(seat: Lease, keepUntil: number): Promise<void> {
  const keepMs = keepUntil - performance.now();
  if (keepMs <= 0 || seat.signal.aborted) return releaseQuietly(seat);
  setTimeout(() => void releaseQuietly(seat), keepMs).unref();
}

/**
 * Ends the wait of the older one of two waiters of this process. Returns the function that ends the registration. Where seats have no
 * tokens nothing is known of their order, and the store tells.
 */
function waitHere(locks: object, name: string, token: bigint | undefined, supersede: () => void): () => void {
  if (token === undefined) return () => undefined;
  const ofManager = waiting.get(locks) ?? new Map<string, LocalWaiter>();
  waiting.set(locks, ofManager);
  const mine: LocalWaiter = { token, supersede };
  const other = ofManager.get(name);
  if (other !== undefined && other.token > token) supersede();
  else {
    other?.supersede();
    ofManager.set(name, mine);
  }
  return () => {
    if (ofManager.get(name) === mine) ofManager.delete(name);
  };
}

/** What ended a wait: the loss of the seat to a newer one is told as such. */
function reasonOf(error: unknown, name: string): unknown {
  return isLockError(error, 'LOCK_LOST') && error.lockName === seatOf(name) && error.reason === 'taken-over'
    ? supersededError(name)
    : error;
}

function supersededError(name: string): LockError {
  const says = `A newer call of newestWins() waits for "${name}": this one did not run.`;
  return new LockError('LOCK_SUPERSEDED', says, { lockName: name });
}

function assertSupported({ features, order }: BackendCapabilities, name: string): void {
  if (features.includes('steal') && order !== 'none') return;
  const says = 'newestWins() needs a backend with a queue and the feature "steal".';
  throw new LockError('LOCK_UNSUPPORTED', says, { lockName: name });
}
