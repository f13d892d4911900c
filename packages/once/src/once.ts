// One file, half of it the documentation of one function: its options and its results are read together.
import { channel } from 'node:diagnostics_channel';
import {
  type BackendCapabilities,
  type FencedLease,
  isLockError,
  type Lock,
  LockError,
  type LockEvents,
  type LockManager,
} from '@locks/core';
import {
  abortSignal,
  defaultLabel,
  invalidArgument,
  MAX_TIMEOUT_MS,
  matching,
  milliseconds,
  type SlotStore,
  oneOf,
  optional,
  type OptionTable,
  readOptions,
  type SlotAnswer,
  type SlotEntry,
  text,
  wholeNumber,
} from '@locks/core/backend';
import { checkCall } from './check-call.ts';
import { keepAtLeast } from './keep-at-least.ts';
import { overtakenBefore, readEntry, readSlots, writeEntry } from './slot-store.ts';
import { runSignal } from './run-signal.ts';
import { isAhead } from './slot-time.ts';
import { type Slot, slotAt } from './slots.ts';

/** Options of {@link once}. All times are milliseconds. */
export interface OnceOptions {
  /** The function that gives the slot of a moment: `day()`, `hour()`, `every(ms)`, or a function of your own. */
  readonly slot: Slot;
  /**
   * The ttl of the lease, as the `lockAtMostFor` of ShedLock: a machine that dies blocks the work for so long. Without `keepAlive` it
   * is also the longest run: work that takes longer loses its lock, and its signal aborts. A whole number up to 2³¹ − 1.
   */
  readonly atMostMs: number;
  /**
   * Whether the lock is renewed for as long as this process lives, as by the `KeepAliveLockProvider` of ShedLock: a run may then
   * take any time, and `atMostMs` may be short.
   * @defaultValue false
   */
  readonly keepAlive?: boolean | undefined;
  /**
   * The longest run with `keepAlive`: then its signal aborts with a `TimeoutError`, as that of `AbortSignal.timeout`, and the lock is no
   * longer renewed. A whole number up to 2³¹ − 1.
   * @defaultValue none
   */
  readonly maxRunMs?: number | undefined;
  /**
   * The shortest time for which the lock is kept after a run that was recorded, as the `lockAtLeastFor` of ShedLock. `once`
   * does not wait for its end. Not above `atMostMs`.
   * @defaultValue 0
   */
  readonly atLeastMs?: number | undefined;
  /** The slot store of the slots that were done. */
  readonly slots: SlotStore;
  /**
   * The treatment of a slot whose run failed or died. `next-machine`: the next call of `once` for this slot runs it, so the work
   * may run more than once. `next-slot`: no call does, so the work may not have run at all.
   */
  readonly retry: 'next-machine' | 'next-slot';
  /**
   * The longest wait while another machine runs the work, to learn the outcome of that run. 0 does not wait; `Infinity` waits
   * until `signal` aborts.
   * @defaultValue 0
   */
  readonly waitMs?: number | undefined;
  /** Ends the wait, and aborts the signal of the work: `once` rejects with its reason, or with what the work throws. */
  readonly signal?: AbortSignal | undefined;
  /**
   * The name of this machine for the slot store and operators: at most 256 UTF-8 bytes, no control characters.
   * @defaultValue `host:pid`
   */
  readonly label?: string | undefined;
  /**
   * The clock, in milliseconds since 1970 in UTC; read once for each call.
   * @defaultValue `Date.now`
   */
  readonly clock?: (() => number) | undefined;
}

/** The argument of the work. */
export interface OnceRun {
  /** The slot that the work runs for. */
  readonly slot: string;
  /** The fencing token, which rises with every run of this work: send it with every write of the work. */
  readonly fencingToken: bigint;
  /** The identity of the lease, which `locks.inspect` shows too. */
  readonly acquisitionId: string;
  /** Milliseconds for which the lock is still certain; 0 once it is lost. */
  readonly validForMs: number;
  /**
   * Aborts when the lock is lost, when `options.signal` aborts, and when the run has taken too long: `atMostMs` after the grant, or
   * with `keepAlive` after `maxRunMs`.
   */
  readonly signal: AbortSignal;
  /**
   * Throws unless the lock is valid for more than `minRemainingMs`.
   * @param minRemainingMs - milliseconds; default 0
   * @throws LockError `LOCK_LOST`
   */
  assertValid(minRemainingMs?: number): void;
}

/**
 * The outcome of a call of `once`.
 *
 * - `ran`: the work ran here, and the slot is recorded as done.
 * - `done-before`: the slot store has this slot as done.
 * - `failed-before`: with `retry: 'next-slot'`: the slot was begun, and that run failed or died.
 * - `slot-over`: the slot store has a later slot: the clock of this machine is behind, or the call came late. With `isSlotAhead` the recorded slot
 *   lies in the future: a machine whose clock was ahead has written it, and the work runs nowhere until {@link resetSlot} or that slot.
 * - `running-elsewhere`: another machine has the lock, also after `waitMs`.
 * - `overtaken`: the work ran here, and lost its lock before it could be recorded; another machine has run the work since.
 */
export type OnceResult<T> =
  | {
      readonly status: 'running-elsewhere';
      readonly slot: string;
    }
  | {
      /** The reason why the work did not run. */
      readonly status: 'done-before' | 'failed-before';
      readonly slot: string;
      /** The entry of the work in the slot store. */
      readonly recorded: SlotEntry;
    }
  | {
      /** The slot store has a later slot. */
      readonly status: 'slot-over';
      readonly slot: string;
      /** The entry of the work in the slot store. */
      readonly recorded: SlotEntry;
      /**
       * Whether the recorded slot lies in the future of the store's time or, where the slot store tells none, of this machine's by more than a slot.
       * A warning of the process and the event `locks:slot-ahead` say so too.
       */
      readonly isSlotAhead: boolean;
    }
  | {
      /** `ran`: the run was recorded. `overtaken`: it was not. */
      readonly status: 'ran' | 'overtaken';
      readonly slot: string;
      /** The token of the lock under which the work ran. */
      readonly fencingToken: bigint;
      readonly value: T;
    };

const readFunction = (value: unknown): value is () => never => typeof value === 'function';
/** Core refuses a ttl below the minimum of the backend, and a label that is too long. */
const TABLE = {
  slot: matching('a function, as day() gives it', readFunction as (value: unknown) => value is Slot),
  atMostMs: wholeNumber(10, MAX_TIMEOUT_MS, 'milliseconds'),
  keepAlive: optional(oneOf(true, false), false),
  maxRunMs: optional(wholeNumber(1, MAX_TIMEOUT_MS, 'milliseconds')),
  atLeastMs: optional(wholeNumber(0, MAX_TIMEOUT_MS, 'milliseconds'), 0),
  slots: readSlots,
  retry: oneOf('next-machine', 'next-slot'),
  waitMs: optional(milliseconds(0, Number.POSITIVE_INFINITY), 0),
  signal: optional(abortSignal),
  label: optional(text('a string', /^/)),
  clock: optional(
    matching('a function', readFunction as (value: unknown) => value is () => number),
    Date.now,
  ),
} satisfies OptionTable<OnceOptions>;

// setup: import { createLocks } from '@locks/core'; import { memoryBackend } from '@locks/memory'; import { day, once, type SlotStore, type OnceRun } from '@locks/once';
// setup: const locks = createLocks(memoryBackend()); declare const slots: SlotStore; declare function sendInvoices(token: bigint, signal: AbortSignal): Promise<number>;
/**
 * Runs the work unless this slot of it was done before, on whatever machine. Every machine calls `once`, for example from its
 * cron.
 *
 * A slot that lies in the future of the store's time by more than a minute is refused: recorded, it would keep all other machines from running the
 * work until then. Where the slot store tells no time, this machine's clock counts, and the next slot is no future yet.
 *
 * Under the lock `name`, `once` reads the slot store, runs the work, and writes the slot with the fencing token of the lease. A
 * recorded slot never runs again; one that is not recorded may run again: this is not "exactly once".
 *
 * @param name - the name of the work and of its lock
 * @returns the outcome of this call; see {@link OnceResult}
 * @throws what the work throws, once the lock was released; what `slots` throws; LockError `LOCK_INVALID_ARGUMENT`, `LOCK_BACKEND`, `LOCK_CLOSED`,
 * `LOCK_UNSUPPORTED` on a backend without fencing tokens, `LOCK_CLOCK_SKEW` for a slot of the future, `LOCK_LOST` when the lock was lost before the work began; the reason of
 * `signal` when it aborts before that
 * @example
 * ```ts
 * const slot = day({ timeZone: 'Europe/Berlin' });
 * const send = ({ signal, fencingToken }: OnceRun) => sendInvoices(fencingToken, signal);
 * const result = await once(locks, 'invoices', send, { slot, atMostMs: 600_000, slots, retry: 'next-machine' });
 * if (result.status === 'ran') console.log(`${result.value} invoices sent`);
 * ```
 */
export async function once<T>(
  locks: Pick<LockManager<FencedLease>, 'lock' | 'capabilities'>,
  name: string,
  work: (run: OnceRun) => T | Promise<T>,
  options: OnceOptions,
): Promise<OnceResult<T>> {
  checkCall('once', locks, name, work);
  const read = readOptions('once()', options, TABLE);
  const { atMostMs, keepAlive, maxRunMs, atLeastMs, slots, retry, waitMs, signal, clock } = read;
  const { label = defaultLabel() } = read;
  if (atLeastMs > atMostMs) {
    throw invalidArgument(`once(): atLeastMs, ${atLeastMs}, must not be above atMostMs, ${atMostMs}.`);
  }
  if (maxRunMs !== undefined && !keepAlive) {
    throw invalidArgument(
      'once(): maxRunMs goes with keepAlive: true; without it atMostMs is the longest run.',
    );
  }
  const renewal = keepAlive ? 'auto' : 'manual';
  const { tenure } = locks.capabilities;
  const lock = locks.lock(name, {
    ttlMs: atMostMs,
    renewal,
    maxHoldMs: keepAlive ? longestHoldMs(maxRunMs, tenure, atMostMs) : atMostMs,
    label,
  });
  if (locks.capabilities.fencing === 'none') {
    throw new LockError('LOCK_UNSUPPORTED', 'once() needs a backend with fencing tokens.', {
      lockName: name,
    });
  }
  const slot = slotAt(read.slot, clock());

  const lease = await acquire(lock, waitMs, signal);
  if (lease === undefined) return { status: 'running-elsewhere', slot };
  const { fencingToken } = lease;
  const entry = (state: SlotEntry['state']): SlotEntry => {
    return { slot, state, token: fencingToken, label, at: Date.now() };
  };
  // `atLeastMs` counts for a recorded run only: a failed one is tried again at once.
  let keepMs = 0;
  const grantedAt = performance.now();
  try {
    const answer = await readEntry(slots, name);
    const { entry: recorded } = answer;
    if (isAhead(read.slot, slot, answer)) throw slotOfTheFuture(name, slot, answer);
    const before = recorded && statusOf(recorded, slot, retry);
    if (recorded !== undefined && before !== undefined) {
      if (before !== 'slot-over') return { status: before, slot, recorded };
      const isSlotAhead = isAhead(read.slot, recorded.slot, answer);
      if (isSlotAhead) reportSlotAhead(name, slot, recorded);
      return { status: before, slot, recorded, isSlotAhead };
    }
    // A run whose end cannot be recorded would be repeated by every machine.
    if (recorded !== undefined && recorded.token > fencingToken) throw overtakenBefore(name, 'once()');
    if (retry === 'next-slot' && !(await writeEntry(slots, name, entry('begun'))))
      throw overtakenBefore(name, 'once()');
    // The answers of the slot store may have taken longer than the lease lasts, or this process stood still.
    lease.assertValid();
    signal?.throwIfAborted();

    const run = runSignal([lease.signal, signal], maxRunMs);
    const assertValid = (minRemainingMs?: number): void => lease.assertValid(minRemainingMs);
    let value: T;
    try {
      value = await work({
        ...{ slot, fencingToken, acquisitionId: lease.acquisitionId, signal: run.signal, assertValid },
        get validForMs() {
          return lease.validForMs;
        },
      });
    } finally {
      run.end();
    }
    // The slot is recorded also where the lock was lost meanwhile: as long as no newer token has written, the slot is done.
    const isRecorded = await writeEntry(slots, name, entry('done'));
    if (!isRecorded) return { status: 'overtaken', slot, fencingToken, value };
    keepMs = atLeastMs - (performance.now() - grantedAt);
    return { status: 'ran', slot, fencingToken, value };
  } finally {
    await keepAtLeast(lease, keepMs, locks.capabilities.ttl.minMs);
  }
}

/** The longest hold of a run that is kept alive, in milliseconds. It is always given: core reports a hold of more than two ttls without it. */
function longestHoldMs(
  maxRunMs: number | undefined,
  tenure: BackendCapabilities['tenure'],
  atMostMs: number,
): number {
  if (maxRunMs === undefined) return Number.MAX_SAFE_INTEGER;
  // A lease lasts for its ttl after its last renewal. A session ends it at once: there it gets this time as well.
  return tenure === 'session' ? maxRunMs + atMostMs : maxRunMs;
}

/** Acquires the lock; gives `undefined` where another machine has it. */
async function acquire(
  lock: Lock<FencedLease>,
  waitMs: number,
  signal: AbortSignal | undefined,
): Promise<FencedLease | undefined> {
  if (waitMs === 0) return lock.tryAcquire({ signal });
  try {
    return await lock.acquire({ waitMs, signal });
  } catch (error) {
    if (isLockError(error, 'LOCK_TIMEOUT')) return undefined;
    throw error;
  }
}

/** The reason why a slot does not run; `undefined`: it runs. */
function statusOf(
  recorded: SlotEntry,
  slot: string,
  retry: OnceOptions['retry'],
): 'done-before' | 'failed-before' | 'slot-over' | undefined {
  if (recorded.state === 'reset') return undefined;
  if (recorded.slot > slot) return 'slot-over';
  if (recorded.slot < slot) return undefined;
  if (recorded.state === 'done') return 'done-before';
  return retry === 'next-slot' ? 'failed-before' : undefined;
}

function slotOfTheFuture(name: string, slot: string, { storeTime }: SlotAnswer): LockError {
  const [whose, time] = storeTime === undefined ? ['this machine', Date.now()] : ['the store', storeTime];
  return new LockError(
    'LOCK_CLOCK_SKEW',
    `once(): the slot ${slot} of the work ${name} lies in the future: the time of ${whose} is ${new Date(time).toISOString()}. Nothing ran, ` +
      'and nothing was recorded, since no other machine would run the work before that slot. Set the clock that gave the slot.',
    { lockName: name },
  );
}

/** The work stands still on all machines, so it is said where nobody looks at the outcome of a call. */
function reportSlotAhead(
  name: string,
  slot: string,
  { slot: recordedSlot, label: recordedBy }: SlotEntry,
): void {
  const event: LockEvents['locks:slot-ahead'] = { name, slot, recordedSlot, recordedBy };
  channel('locks:slot-ahead').publish(event);
  process.emitWarning(
    `The work ${name} runs on no machine before the slot ${recordedSlot}, which lies in the future: ${recordedBy} has recorded it, and its clock ` +
      'was ahead. resetSlot() of @locks/once, or `locks once NAME --reset`, lets the work run again.',
    { code: 'LOCKS_SLOT_AHEAD' },
  );
}
