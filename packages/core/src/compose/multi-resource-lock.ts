import { setTimeout as delay } from 'node:timers/promises';
import { abortSignal } from '../backend/abort-signal.ts';
import { type OptionsRead, readOptions } from '../backend/read-options.ts';
import { LockError, mustBe, quote } from '../errors.ts';
import type { Lease } from '../lease.ts';
import { LeaseHandle, releaseIfAborted } from '../lease/lease-handle.ts';
import type { LeaseState } from '../lifetime/lease-state.ts';
import type { Lock } from '../lock.ts';
import { ACQUIRE_TABLE, ALL_TABLE, ELSEWHERE, resolveOptions, TRY_ALL_TABLE } from '../options.ts';
import { workAndRelease } from '../run.ts';
import { runUnder } from '../scope/context.ts';
import { CombinedClock } from '../lifetime/clock.ts';
import { acquireAtOnce } from './acquire-at-once.ts';
import { MultiLeaseHandle } from './multi-lease-handle.ts';
import {
  type AllOptions,
  membersOf,
  type MultiLease,
  type MultiLock,
  type LockMember,
} from './multi-lock.ts';

/** The wait for locks of another copy of core, or of the application's own, in milliseconds. */
const DEFAULT_WAIT_MS = 10_000;
const PAUSE_MS = 50;

/** The `MultiLock` of all backends. */
export class MultiResourceLock implements MultiLock {
  readonly locks: readonly Lock[];
  readonly #members: readonly LockMember[];
  readonly #clock = new CombinedClock();

  /** @throws LockError `LOCK_INVALID_ARGUMENT` */
  constructor(locks: readonly Lock[]) {
    this.#members = membersOf(locks);
    this.locks = [...locks];
  }

  acquire(options?: AllOptions): Promise<MultiLease> {
    // Only a single attempt gives `undefined`. Nothing is awaited after `releaseIfAborted`: an abort in that moment would be missed.
    return this.#acquire(options, false) as Promise<MultiLease>;
  }

  tryAcquire(options?: Omit<AllOptions, 'waitMs'>): Promise<MultiLease | undefined> {
    return this.#acquire(options, true);
  }

  async run<T>(work: (lease: MultiLease) => T | Promise<T>, options?: AllOptions): Promise<T> {
    if (typeof work !== 'function') throw mustBe('run(): the work', 'a function', work);
    const wholeWaitMs = this.#waitMsOf('run()', options);
    if (this.#members.some(({ internals }) => internals?.options.reentrant))
      return this.#runNested(work, options, wholeWaitMs);
    const lease = ((await this.acquire(options)) as MultiLeaseHandle).follow(signalIn(options));
    return workAndRelease(
      () => runUnder(statesOf(lease.leases), () => work(lease)),
      () => lease.releaseQuietly(),
    );
  }

  async #acquire(options: AllOptions | undefined, isSingle: boolean): Promise<MultiLease | undefined> {
    const waitMs = this.#waitMsOf(isSingle ? 'tryAcquire()' : 'acquire()', options);
    const startedAt = this.#clock.now();
    const remainingMs = (): number => this.#remainingMs(startedAt, waitMs);
    for (let leftMs = waitMs; ; leftMs = remainingMs()) {
      const together = await acquireAtOnce(this.#members, options, leftMs, isSingle || leftMs === 0);
      if (together.status === 'granted') return this.#deliver(together.leases, options);
      // Acquiring the members one after the other names a member whose limit is in conflict (docs/spec.md §15.7).
      const mayConflict = this.#members.some(({ lock }) => lock.mode.kind === 'permit');
      if (isSingle && together.status === 'contended' && !mayConflict) return undefined;
      const leases = await this.#oneByOne((lock) => {
        return isSingle ? lock.tryAcquire(options) : lock.acquire({ ...options, waitMs: remainingMs() });
      });
      const isComplete = leases.length === this.#members.length;
      const ended = endedOf(leases);
      if (isComplete && ended === undefined) return this.#deliver(leases, options);
      releaseAll(leases);
      if (!isComplete || ended === undefined) return undefined;
      // One lease ended while the others were waited for.
      if (isSingle || this.#clock.now() >= startedAt + waitMs) throw this.#tooLate(ended, startedAt);
      // The pause keeps repeated rounds from asking the stores in a tight loop. The next round throws the reason of an abort.
      await delay(Math.min(PAUSE_MS, remainingMs()), undefined, { signal: signalIn(options) }).catch(
        () => {},
      );
    }
  }

  /** Nests a `run` of each member in that of the one before: reentrant members re-enter leases of the caller (docs/spec.md §5.2). */
  #runNested<T>(
    work: (lease: MultiLease) => T | Promise<T>,
    options: AllOptions | undefined,
    wholeWaitMs: number,
  ): Promise<T> {
    const startedAt = this.#clock.now();
    const runFrom = async (index: number, leases: readonly Lease[]): Promise<T> => {
      const member = this.#members[index];
      if (member === undefined) {
        const ended = endedOf(leases);
        if (ended !== undefined) throw this.#tooLate(ended, startedAt);
        return await work(this.#leaseOf(leases));
      }
      const waitMs = this.#remainingMs(startedAt, wholeWaitMs);
      return member.lock.run((lease) => runFrom(index + 1, [...leases, lease]), { ...options, waitMs });
    };
    return runFrom(0, []);
  }

  /**
   * The time left of the wait, in milliseconds. It is 0 only where `waitMs` is: 0 asks for single attempts, which may take
   * longer than the multi-lock may (docs/spec.md §16.3).
   */
  #remainingMs(startedAt: number, waitMs: number): number {
    return waitMs === 0 ? 0 : Math.max(1, startedAt + waitMs - this.#clock.now());
  }

  /**
   * How long the multi-lock waits. Checks the options for all members before anything is sent: an error for the last must not come after
   * the first was taken.
   */
  #waitMsOf(caller: string, options: AllOptions | undefined): number {
    const table = caller === 'tryAcquire()' ? TRY_ALL_TABLE : ALL_TABLE;
    const read: Partial<OptionsRead<typeof ALL_TABLE>> = readOptions(caller, options, table, ELSEWHERE);
    const { waitMs = DEFAULT_WAIT_MS } = read;
    const waits = this.#members.flatMap(({ internals }) => {
      if (internals === undefined) return [];
      const { ttl } = internals.core.backend.capabilities;
      return resolveOptions(ACQUIRE_TABLE, internals.options, options, ttl).waitMs;
    });
    return waits.length > 0 ? Math.min(...waits) : waitMs;
  }

  /** Acquires the members one by one; gives the leases from before the first refusal. When a member fails, all are released. */
  async #oneByOne(take: (lock: Lock) => Promise<Lease | undefined>): Promise<Lease[]> {
    const leases: Lease[] = [];
    try {
      for (const { lock } of this.#members) {
        // What was taken before stays while this one is waited for.
        const lease = await runUnder(statesOf(leases), () => take(lock));
        if (lease === undefined) break;
        leases.push(lease);
      }
      return leases;
    } catch (error) {
      releaseAll(leases);
      throw error;
    }
  }

  #deliver(leases: readonly Lease[], options: AllOptions | undefined): MultiLeaseHandle {
    return releaseIfAborted(this.#leaseOf(leases), signalIn(options));
  }

  /** @param leases - in the order of the members; the multi-lock has them in the order of `locks` */
  #leaseOf(leases: readonly Lease[]): MultiLeaseHandle {
    const ordered: Lease[] = [];
    for (const [index, { givenAt }] of this.#members.entries()) ordered[givenAt] = leases[index] as Lease;
    return new MultiLeaseHandle(ordered);
  }

  #tooLate({ name }: Lease, startedAt: number): LockError {
    return new LockError(
      'LOCK_TIMEOUT',
      `Gave up on ${quote(name)} after ${Math.round(this.#clock.now() - startedAt)} ms: it was over, or had too little time ` +
        "left, when the last of the locks was granted. Use a longer ttlMs, or renewal: 'auto'.",
      { lockName: name },
    );
  }
}

/** Releases all in the background: the caller does not wait. */
function releaseAll(leases: readonly Lease[]): void {
  void new MultiLeaseHandle(leases).releaseQuietly();
}

function signalIn(options: AllOptions | undefined): AbortSignal | undefined {
  return options?.signal && abortSignal(options.signal, 'signal');
}

/** The leases of this copy of core. */
function statesOf(leases: readonly Lease[]): LeaseState[] {
  return leases.flatMap((lease) => LeaseHandle.of(lease)?.lease ?? []);
}

function endedOf(leases: readonly Lease[]): Lease | undefined {
  return leases.find(({ validForMs }) => validForMs === 0);
}
