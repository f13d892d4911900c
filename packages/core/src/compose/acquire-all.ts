import { setTimeout as delay } from 'node:timers/promises';
import { LockError, mustBe, quote } from '../errors.ts';
import type { Lease } from '../lease.ts';
import type { Lock } from '../lock.ts';
import {
  ACQUIRE_KEYS,
  type AcquireOptions,
  checkDuration,
  checkKeys,
  resolveAcquireOptions,
} from '../options.ts';
import { CombinedClock } from '../tenure/clock.ts';
import { workAndRelease } from '../run.ts';
import { type AllOptions, type Member, membersOf, type MultiLease, type MultiLock } from './all.ts';
import { acquireAtOnce } from './at-once.ts';
import { LeaseSet } from './lease-set.ts';

/** For locks of another copy of core, or of somebody's own. */
const DEFAULT_WAIT_MS = 10_000;
const PAUSE_MS = 50;

/** What holds for the whole set. */
interface Resolved {
  readonly waitMs: number;
  /** What must be left of each member, in their order. */
  readonly minRemainingMs: readonly number[];
}

/** The one implementation of `MultiLock`. */
export class LockSet implements MultiLock {
  readonly locks: readonly Lock[];
  readonly #members: readonly Member[];
  readonly #clock = new CombinedClock();

  /** @throws LockError `LOCK_INVALID_ARGUMENT` */
  constructor(locks: readonly Lock[]) {
    this.#members = membersOf(locks);
    this.locks = [...locks];
  }

  async acquire(options?: AllOptions): Promise<MultiLease> {
    const { waitMs, minRemainingMs } = this.#resolve(options);
    const startedAt = this.#clock.now();
    const remainingMs = (): number => Math.max(0, startedAt + waitMs - this.#clock.now());
    for (let waitLeft = waitMs; ; waitLeft = remainingMs()) {
      const together = await acquireAtOnce(this.#members, options, waitLeft);
      if (together.status === 'granted') return this.#handOut(together.leases, options);
      const leases = await this.#oneByOne((lock) => lock.acquire({ ...options, waitMs: remainingMs() }));
      if (areValidFor(leases, minRemainingMs)) return this.#handOut(leases, options);
      // One ended while the others were waited for.
      giveBack(leases);
      if (remainingMs() === 0) throw this.#tooLate(this.#clock.now() - startedAt);
      // Where that is sure to happen again, the stores are not asked in a tight loop. An abort is told by the next round.
      await delay(Math.min(PAUSE_MS, remainingMs()), undefined, { signal: options?.signal }).catch(() => {});
    }
  }

  async tryAcquire(options?: AllOptions): Promise<MultiLease | undefined> {
    const { minRemainingMs } = this.#resolve(options);
    const startedAt = this.#clock.now();
    const together = await acquireAtOnce(this.#members, options, 0);
    if (together.status === 'granted') return this.#handOut(together.leases, options);
    // One after the other, a limit that contradicts what lives there comes out (docs/spec.md §15.7).
    const mayConflict = this.#members.some(({ lock }) => lock.mode.kind === 'permit');
    if (together.status === 'contended' && !mayConflict) return undefined;
    const leases = await this.#oneByOne((lock) => lock.tryAcquire(options));
    const all = leases.length === this.#members.length;
    if (all && areValidFor(leases, minRemainingMs)) return this.#handOut(leases, options);
    giveBack(leases);
    if (all) throw this.#tooLate(this.#clock.now() - startedAt);
    return undefined;
  }

  async run<T>(work: (lease: MultiLease) => T | Promise<T>, options?: AllOptions): Promise<T> {
    if (typeof work !== 'function') throw mustBe('What run() works', 'a function', work);
    const resolved = this.#resolve(options);
    if (this.#members.some(({ parts }) => parts?.options.reentrant))
      return this.#runNested(work, options, resolved);
    const set = (await this.acquire(options)) as LeaseSet;
    return workAndRelease(
      () => work(set),
      () => set.releaseQuietly(),
    );
  }

  /** One `run` inside the other: so members that ask for it re-enter what the caller holds already (docs/spec.md §5.2). */
  #runNested<T>(
    work: (lease: MultiLease) => T | Promise<T>,
    options: AllOptions | undefined,
    resolved: Resolved,
  ): Promise<T> {
    const startedAt = this.#clock.now();
    const from = async (index: number, leases: readonly Lease[]): Promise<T> => {
      const member = this.#members[index];
      const waitedMs = this.#clock.now() - startedAt;
      if (member === undefined) {
        if (!areValidFor(leases, resolved.minRemainingMs)) throw this.#tooLate(waitedMs);
        return await work(this.#lease(leases));
      }
      const waitMs = Math.max(0, resolved.waitMs - waitedMs);
      return member.lock.run((lease) => from(index + 1, [...leases, lease]), { ...options, waitMs });
    };
    return from(0, []);
  }

  /** Checked for all members before anything is sent: what is wrong for the last must not come out after the first. */
  #resolve(options: AllOptions | undefined): Resolved {
    checkOptions(options);
    const own = this.#members.map(({ parts }) =>
      parts === undefined
        ? undefined
        : resolveAcquireOptions(parts.options, options, parts.engine.backend.capabilities.ttl),
    );
    const waits = own.flatMap((one) => one?.waitMs ?? []);
    const waitMs = waits.length > 0 ? Math.min(...waits) : (options?.waitMs ?? DEFAULT_WAIT_MS);
    return {
      waitMs: checkDuration('waitMs', waitMs, 0, Number.POSITIVE_INFINITY),
      minRemainingMs: own.map((one) => one?.minRemainingMs ?? options?.minRemainingMs ?? 0),
    };
  }

  /** Those that came before the first that was refused; all are given back when one fails. */
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
      giveBack(leases);
      throw error;
    }
  }

  #tooLate(waitedMs: number): LockError {
    const { lock } = this.#members[0] as Member;
    const which = `${quote(lock.name)}${this.#members.length > 1 ? ' and others' : ''}`;
    return new LockError(
      'LOCK_TIMEOUT',
      `Gave up on ${which} after ${Math.round(waitedMs)} ms: one was over, or had too little time left, when the last ` +
        "was granted. Use a longer ttlMs, or renewal: 'auto'.",
      { resource: lock.name },
    );
  }

  /** Who aborted in the very moment of the last grant does not hold (docs/spec.md §2.3). */
  #handOut(leases: readonly Lease[], options: AllOptions | undefined): LeaseSet {
    if (!options?.signal?.aborted) return this.#lease(leases);
    giveBack(leases);
    throw options.signal.reason;
  }

  /** `leases` in the order of the members; users get them in their own. */
  #lease(leases: readonly Lease[]): LeaseSet {
    const ordered: Lease[] = [];
    for (const [index, { place }] of this.#members.entries()) ordered[place] = leases[index] as Lease;
    return new LeaseSet(ordered);
  }
}

/** In the background: what the caller is told does not wait for it, and an unanswered one ends by its ttl. */
function giveBack(leases: readonly Lease[]): void {
  void new LeaseSet(leases).releaseQuietly();
}

function areValidFor(leases: readonly Lease[], minRemainingMs: readonly number[]): boolean {
  return leases.every(({ validForMs }, index) => validForMs > (minRemainingMs[index] as number));
}

function checkOptions(options: AcquireOptions | undefined): void {
  if (options === undefined) return;
  checkKeys(options, ACQUIRE_KEYS);
  if (options.within !== undefined) throw mustBe('within', 'absent in all()', options.within);
  if (options.steal) throw mustBe('steal', 'absent in all()', options.steal);
}
