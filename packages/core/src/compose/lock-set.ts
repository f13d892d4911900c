import { setTimeout as delay } from 'node:timers/promises';
import { readOptions } from '../backend/read-options.ts';
import { LockError, mustBe, quote } from '../errors.ts';
import type { Lease } from '../lease.ts';
import { releaseIfAborted } from '../lease/lease-handle.ts';
import type { Lock } from '../lock.ts';
import { ACQUIRE_TABLE, ALL_TABLE, ELSEWHERE, resolveOptions } from '../options.ts';
import { workAndRelease } from '../run.ts';
import { CombinedClock } from '../lifetime/clock.ts';
import { acquireAtOnce } from './acquire-at-once.ts';
import { LeaseSet } from './lease-set.ts';
import { type AllOptions, membersOf, type MultiLease, type MultiLock, type SetMember } from './multi-lock.ts';

/** The wait for locks of another copy of core, or of the application's own, in milliseconds. */
const DEFAULT_WAIT_MS = 10_000;
const PAUSE_MS = 50;

/** The `MultiLock` of all backends. */
export class LockSet implements MultiLock {
  readonly locks: readonly Lock[];
  readonly #members: readonly SetMember[];
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

  tryAcquire(options?: AllOptions): Promise<MultiLease | undefined> {
    return this.#acquire(options, true);
  }

  async run<T>(work: (lease: MultiLease) => T | Promise<T>, options?: AllOptions): Promise<T> {
    if (typeof work !== 'function') throw mustBe('What run() works', 'a function', work);
    const setWaitMs = this.#waitMsOf('run()', options);
    if (this.#members.some(({ parts }) => parts?.options.reentrant))
      return this.#runNested(work, options, setWaitMs);
    const set = (await this.acquire(options)) as LeaseSet;
    return workAndRelease(
      () => work(set),
      () => set.releaseQuietly(),
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
        const rest = { ...options, waitMs: remainingMs() };
        return isSingle ? lock.tryAcquire(rest) : lock.acquire(rest);
      });
      const isComplete = leases.length === this.#members.length;
      const ended = endedOf(leases);
      if (isComplete && ended === undefined) return this.#deliver(leases, options);
      releaseAll(leases);
      if (!isComplete || ended === undefined) return undefined;
      // One lease ended while the others were waited for.
      if (isSingle || this.#clock.now() >= startedAt + waitMs) throw this.#tooLate(ended, startedAt);
      // The pause keeps repeated rounds from asking the stores in a tight loop. The next round throws the reason of an abort.
      await delay(Math.min(PAUSE_MS, remainingMs()), undefined, { signal: options?.signal }).catch(() => {});
    }
  }

  /** Nests a `run` of each member in that of the one before: reentrant members re-enter leases of the caller (docs/spec.md §5.2). */
  #runNested<T>(
    work: (lease: MultiLease) => T | Promise<T>,
    options: AllOptions | undefined,
    setWaitMs: number,
  ): Promise<T> {
    const startedAt = this.#clock.now();
    const runFrom = async (index: number, leases: readonly Lease[]): Promise<T> => {
      const member = this.#members[index];
      if (member === undefined) {
        const ended = endedOf(leases);
        if (ended !== undefined) throw this.#tooLate(ended, startedAt);
        return await work(this.#setOf(leases));
      }
      const waitMs = this.#remainingMs(startedAt, setWaitMs);
      return member.lock.run((lease) => runFrom(index + 1, [...leases, lease]), { ...options, waitMs });
    };
    return runFrom(0, []);
  }

  /**
   * The time left of the wait, in milliseconds. It is 0 only where `waitMs` is: 0 asks for single attempts, which may take
   * longer than the set may (docs/spec.md §16.3).
   */
  #remainingMs(startedAt: number, waitMs: number): number {
    return waitMs === 0 ? 0 : Math.max(1, startedAt + waitMs - this.#clock.now());
  }

  /**
   * How long the set waits. Checks the options for all members before anything is sent: an error for the last must not come after
   * the first was taken.
   */
  #waitMsOf(caller: string, options: AllOptions | undefined): number {
    const { waitMs = DEFAULT_WAIT_MS } = readOptions(caller, options, ALL_TABLE, ELSEWHERE);
    const waits = this.#members.flatMap(({ parts }) => {
      if (parts === undefined) return [];
      const { ttl } = parts.core.backend.capabilities;
      return resolveOptions(ACQUIRE_TABLE, parts.options, options, ttl).waitMs;
    });
    return waits.length > 0 ? Math.min(...waits) : waitMs;
  }

  /** Acquires the members one by one; gives the leases from before the first refusal. When a member fails, all are released. */
  async #oneByOne(take: (lock: Lock) => Promise<Lease | undefined>): Promise<Lease[]> {
    const leases: Lease[] = [];
    try {
      for (const { lock } of this.#members) {
        const lease = await take(lock);
        if (lease === undefined) break;
        leases.push(lease);
      }
      return leases;
    } catch (error) {
      releaseAll(leases);
      throw error;
    }
  }

  #deliver(leases: readonly Lease[], options: AllOptions | undefined): LeaseSet {
    return releaseIfAborted(this.#setOf(leases), options?.signal);
  }

  /** @param leases - in the order of the members; the set has them in the order of `locks` */
  #setOf(leases: readonly Lease[]): LeaseSet {
    const ordered: Lease[] = [];
    for (const [index, { givenAt }] of this.#members.entries()) ordered[givenAt] = leases[index] as Lease;
    return new LeaseSet(ordered);
  }

  #tooLate({ name }: Lease, startedAt: number): LockError {
    return new LockError(
      'LOCK_TIMEOUT',
      `Gave up on ${quote(name)} after ${Math.round(this.#clock.now() - startedAt)} ms: it was over, or had too little time ` +
        "left, when the last of the locks was granted. Use a longer ttlMs, or renewal: 'auto'.",
      { resource: name },
    );
  }
}

/** Releases all in the background: the caller does not wait, and a lease whose release gets no answer ends by its ttl. */
function releaseAll(leases: readonly Lease[]): void {
  void new LeaseSet(leases).releaseQuietly();
}

function endedOf(leases: readonly Lease[]): Lease | undefined {
  return leases.find(({ validForMs }) => validForMs === 0);
}
