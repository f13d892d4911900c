import {
  type AcquireOptions,
  type BackendCapabilities,
  type BaseLease,
  isLockError,
  type Lease,
  LockError,
  type LockManager,
} from '@locks/core';
import {
  MAX_TIMEOUT_MS,
  milliseconds,
  mustBe,
  optional,
  type OptionTable,
  readOptions,
  text,
  wholeNumber,
} from '@locks/core/backend';
import { checkManager } from './check-manager.ts';
import { readSignal } from './read-signal.ts';
import { runSignal } from './run-signal.ts';

/** Options of {@link newestWins}: as those of `run`. All times are milliseconds. */
export type NewestWinsOptions = Pick<AcquireOptions, 'ttlMs' | 'waitMs' | 'label' | 'signal'>;

/**
 * The ttl of the seat of the newest: a waiter that stands still for longer loses it. Core renews it at a third of that, and a waiter of another
 * process learns then that a newer one has taken it.
 */
const SEAT_TTL_MS = 10_000;

const TABLE = {
  // Core reads these again, with the limits of the backend.
  ttlMs: optional(wholeNumber(1, MAX_TIMEOUT_MS, 'milliseconds')),
  waitMs: optional(milliseconds(0, Number.POSITIVE_INFINITY)),
  label: optional(text('a string', /^/)),
  signal: optional(readSignal),
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
 * The newest waiter has a seat, the lock `<name>:newest`, which the next one steals. When its turn comes, a waiter works only if the store says that it still has the seat: so no work begins after the work of a newer call has begun (docs/spec.md §7.10).
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
  checkManager('newestWins()', locks);
  const { ttlMs, waitMs, label, signal } = readOptions('newestWins()', options, TABLE);
  if (typeof work !== 'function') throw mustBe('What newestWins() runs', 'a function', work);
  const lock = locks.lock(name, { ttlMs, waitMs, label });
  assertSupported(locks.capabilities, name);
  const seatTtlMs = Math.max(SEAT_TTL_MS, locks.capabilities.ttl.minMs);
  const seat: Lease = await locks
    .lock(`${name}:newest`, { ttlMs: seatTtlMs, renewal: 'auto', maxHoldMs: Number.MAX_SAFE_INTEGER, label })
    .acquire({ steal: true, signal });
  const superseded = new AbortController();
  const leave = waitHere(locks, name, seat.fencingToken, () => superseded.abort(supersededError(name)));
  const wait = runSignal([seat.signal, superseded.signal, signal]);
  let begun = false;
  try {
    return await lock.run(
      async (lease) => {
        // The store says whether a newer call has taken the seat; a release would not tell why it is lost.
        await seat.renew();
        await seat[Symbol.asyncDispose]();
        lease.assertValid();
        begun = true;
        return work(lease);
      },
      { signal: wait.signal },
    );
  } catch (error) {
    throw begun ? error : reasonOf(error, name);
  } finally {
    wait.end();
    leave();
    await seat[Symbol.asyncDispose]();
  }
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
  return isLockError(error, 'LOCK_LOST') &&
    error.resource === `${name}:newest` &&
    error.reason === 'taken-over'
    ? supersededError(name)
    : error;
}

function supersededError(name: string): LockError {
  const says = `A newer call of newestWins() waits for "${name}": this one did not run.`;
  return new LockError('LOCK_SUPERSEDED', says, { resource: name });
}

function assertSupported({ features, order }: BackendCapabilities, name: string): void {
  if (features.includes('steal') && order !== 'none') return;
  const says = 'newestWins() needs a backend with a queue and the feature "steal".';
  throw new LockError('LOCK_UNSUPPORTED', says, { resource: name });
}
