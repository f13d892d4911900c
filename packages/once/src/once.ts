import { hostname } from 'node:os';
import { type FencedLease, isLockError, type Lock, LockError, type LockManager } from '@locks/core';
import {
  invalidArgument,
  MAX_TIMEOUT_MS,
  matching,
  milliseconds,
  mustBe,
  type OnceRecord,
  oneOf,
  optional,
  type OptionTable,
  readOptions,
  type SlotEntry,
  text,
  wholeNumber,
} from '@locks/core/backend';
import { checkManager } from './check-manager.ts';
import { keepAtLeast } from './keep-at-least.ts';
import { readEntry, readRecord, writeEntry } from './record.ts';
import { readSignal } from './read-signal.ts';
import { runSignal } from './run-signal.ts';
import { type Slot, slotAt } from './slots.ts';

/** Options of {@link once}. All times are milliseconds. */
export interface OnceOptions {
  /** The function that gives the slot of a moment: `day()`, `hour()`, `every(ms)`, or a function of your own. */
  readonly slot: Slot;
  /**
   * The ttl of the lease, as the `lockAtMostFor` of ShedLock: a machine that dies blocks the job for so long. Without `keepAlive` it
   * is also the longest run: a job that takes longer loses its lock, and its signal aborts. A whole number up to 2³¹ − 1.
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
  /** The record of the slots that were done. */
  readonly record: OnceRecord;
  /**
   * The treatment of a slot whose run failed or died. `next-machine`: the next call of `once` for this slot runs it, so a job
   * may run more than once. `next-slot`: no call does, so a job may not have run at all.
   */
  readonly retry: 'next-machine' | 'next-slot';
  /**
   * The longest wait while another machine runs the job, to learn the outcome of that run. 0 does not wait; `Infinity` waits
   * until `signal` aborts.
   * @defaultValue 0
   */
  readonly waitMs?: number | undefined;
  /** Ends the wait, and aborts the signal of the job: `once` rejects with its reason, or with what the job throws. */
  readonly signal?: AbortSignal | undefined;
  /**
   * The name of this machine for the record and operators: at most 256 UTF-8 bytes, no control characters.
   * @defaultValue `host:pid`
   */
  readonly label?: string | undefined;
  /**
   * The clock, in milliseconds since 1970 in UTC; read once for each call.
   * @defaultValue `Date.now`
   */
  readonly clock?: (() => number) | undefined;
}

/** The argument of the job. */
export interface OnceRun {
  /** The slot that the job runs for. */
  readonly slot: string;
  /** The fencing token, which rises with every run of this job: send it with every write of the job. */
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
 * - `ran`: the job ran here, and the slot is recorded as done.
 * - `done-before`: the record has this slot as done.
 * - `failed-before`: with `retry: 'next-slot'`: the slot was begun, and that run failed or died.
 * - `slot-over`: the record has a later slot: the clock of this machine is behind, or the call came late.
 * - `running-elsewhere`: another machine has the lock, also after `waitMs`.
 * - `overtaken`: the job ran here, and lost its lock before it could be recorded; another machine has run the job since.
 */
export type OnceResult<T> =
  | {
      readonly status: 'running-elsewhere';
      /** The slot of the call. */
      readonly slot: string;
    }
  | {
      /** The reason why the job did not run. */
      readonly status: 'done-before' | 'failed-before' | 'slot-over';
      /** The slot of the call. */
      readonly slot: string;
      /** The entry of the job in the record. */
      readonly recorded: SlotEntry;
    }
  | {
      /** `ran`: the run was recorded. `overtaken`: it was not. */
      readonly status: 'ran' | 'overtaken';
      /** The slot of the call. */
      readonly slot: string;
      /** The token of the lock under which the job ran. */
      readonly fencingToken: bigint;
      /** The result of the job. */
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
  record: readRecord,
  retry: oneOf('next-machine', 'next-slot'),
  waitMs: optional(milliseconds(0, Number.POSITIVE_INFINITY), 0),
  signal: optional(readSignal),
  label: optional(text('a string', /^/)),
  clock: optional(
    matching('a function', readFunction as (value: unknown) => value is () => number),
    Date.now,
  ),
} satisfies OptionTable<OnceOptions>;

// setup: import { createLocks } from '@locks/core'; import { memoryBackend } from '@locks/memory'; import { day, once, type OnceRecord } from '@locks/once';
// setup: const locks = createLocks(memoryBackend()); declare const record: OnceRecord; declare function sendInvoices(token: bigint, signal: AbortSignal): Promise<number>;
/**
 * Runs a job unless this slot of it was done before, on whatever machine. Every machine calls `once`, for example from its
 * cron.
 *
 * Under the lock `name`, `once` reads the record, runs the job, and writes the slot with the fencing token of the lease. A
 * recorded slot never runs again; one that is not recorded may run again: this is not "exactly once".
 *
 * @param name - the name of the job and of its lock
 * @returns the outcome of this call; see {@link OnceResult}
 * @throws what the job throws, once the lock was released; what `record` throws; LockError `LOCK_INVALID_ARGUMENT`, `LOCK_BACKEND`, `LOCK_CLOSED`,
 * `LOCK_UNSUPPORTED` on a backend without fencing tokens, `LOCK_LOST` when the lock was lost before the job began; the reason of
 * `signal` when it aborts before that
 * @example
 * ```ts
 * const result = await once(
 *   locks,
 *   'invoices',
 *   { slot: day({ timeZone: 'Europe/Berlin' }), atMostMs: 600_000, record, retry: 'next-machine' },
 *   ({ signal, fencingToken }) => sendInvoices(fencingToken, signal),
 * );
 * if (result.status === 'ran') console.log(`${result.value} invoices sent`);
 * ```
 */
export async function once<T>(
  locks: Pick<LockManager<FencedLease>, 'lock' | 'capabilities'>,
  name: string,
  options: OnceOptions,
  job: (run: OnceRun) => T | Promise<T>,
): Promise<OnceResult<T>> {
  checkManager('once()', locks);
  const read = readOptions('once()', options, TABLE);
  const { atMostMs, keepAlive, maxRunMs, atLeastMs, record, retry, waitMs, signal, clock } = read;
  const { label = defaultLabel() } = read;
  if (typeof job !== 'function') throw mustBe('What once() runs', 'a function', job);
  if (atLeastMs > atMostMs) {
    throw invalidArgument(`once(): atLeastMs, ${atLeastMs}, must not be above atMostMs, ${atMostMs}.`);
  }
  if (maxRunMs !== undefined && !keepAlive) {
    throw invalidArgument(
      'once(): maxRunMs goes with keepAlive: true; without it atMostMs is the longest run.',
    );
  }
  const renewal = keepAlive ? 'auto' : 'manual';
  // Core reports a hold of more than two ttls, unless it is known how long it may be.
  const lock = locks.lock(name, {
    ttlMs: atMostMs,
    renewal,
    maxHoldMs: maxRunMs ?? Number.MAX_SAFE_INTEGER,
    label,
  });
  if (locks.capabilities.fencing === 'none') {
    throw new LockError('LOCK_UNSUPPORTED', 'once() needs a backend with fencing tokens.', {
      resource: name,
    });
  }
  const slot = slotAt(read.slot, clock());

  const lease = await acquire(lock, waitMs, signal);
  if (lease === undefined) return { status: 'running-elsewhere', slot };
  const { fencingToken } = lease;
  const entry = (state: SlotEntry['state']): SlotEntry => {
    return { slot, state, token: fencingToken, label, at: clock() };
  };
  // `atLeastMs` counts for a recorded run only: a failed one is tried again at once.
  let keepMs = 0;
  const grantedAt = performance.now();
  try {
    const recorded = await readEntry(record, name);
    const before = recorded && statusOf(recorded, slot, retry);
    if (recorded !== undefined && before !== undefined) return { status: before, slot, recorded };
    // A run whose end cannot be recorded would be repeated by every machine.
    if (recorded !== undefined && recorded.token > fencingToken) throw overtakenBefore(name);
    if (retry === 'next-slot' && !(await writeEntry(record, name, entry('begun'))))
      throw overtakenBefore(name);
    // The answers of the record may have taken longer than the lease lasts, or this process stood still.
    lease.assertValid();
    signal?.throwIfAborted();

    const run = runSignal([lease.signal, signal], maxRunMs);
    const assertValid = (minRemainingMs?: number): void => lease.assertValid(minRemainingMs);
    let value: T;
    try {
      value = await job({
        ...{ slot, fencingToken, acquisitionId: lease.acquisitionId, signal: run.signal, assertValid },
        get validForMs() {
          return lease.validForMs;
        },
      });
    } finally {
      run.end();
    }
    // The slot is recorded also where the lock was lost meanwhile: as long as no newer token has written, the slot is done.
    const isRecorded = await writeEntry(record, name, entry('done'));
    if (!isRecorded) return { status: 'overtaken', slot, fencingToken, value };
    keepMs = atLeastMs - (performance.now() - grantedAt);
    return { status: 'ran', slot, fencingToken, value };
  } finally {
    await keepAtLeast(lease, keepMs, locks.capabilities.ttl.minMs);
  }
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
  if (recorded.slot > slot) return 'slot-over';
  if (recorded.slot < slot) return undefined;
  if (recorded.state === 'done') return 'done-before';
  return retry === 'next-slot' ? 'failed-before' : undefined;
}

function overtakenBefore(name: string): LockError {
  return new LockError(
    'LOCK_LOST',
    `The job ${name} did not run: its record was written under a newer token. Another machine has the lock by now, or the ` +
      'tokens of the lock have gone back; then delete the entry.',
    { resource: name, reason: 'taken-over' },
  );
}

function defaultLabel(): string {
  // A host name may have any characters, and must not make the job fail.
  return `${hostname()
    .replace(/[^\x20-\x7e]/g, '?')
    .slice(0, 200)}:${process.pid}`;
}
