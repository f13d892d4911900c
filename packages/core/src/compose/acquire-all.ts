import { mustBe, invalidArgument } from '../errors.ts';
import type { Lease } from '../lease.ts';
import type { Lock } from '../lock.ts';
import { checkDuration } from '../options.ts';
import { CombinedClock } from '../tenure/clock.ts';
import { workAndRelease } from '../run.ts';
import { type AllOptions, type Member, membersOf, type MultiLease, type MultiLock } from './all.ts';
import { acquireAtOnce } from './at-once.ts';
import { LeaseSet } from './lease-set.ts';

const DEFAULT_WAIT_MS = 10_000;

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
    checkOptions(options);
    const now = (): number => this.#clock.now();
    const waitMs = this.#waitMs(options);
    const deadline = now() + waitMs;
    for (let remaining = waitMs; ; remaining = deadline - now()) {
      const together = await acquireAtOnce(this.#members, options, remaining);
      if (together.status === 'granted') return this.#lease(together.leases);
      const leases = await this.#oneByOne(options, () => Math.max(0, deadline - now()));
      const set = this.#lease(leases);
      if (set.validForMs > (options?.minRemainingMs ?? 0)) return set;
      // One ended while the others were waited for.
      if (now() < deadline) giveBack(leases);
      else await failed(set, leases);
    }
  }

  async tryAcquire(options?: AllOptions): Promise<MultiLease | undefined> {
    checkOptions(options);
    const together = await acquireAtOnce(this.#members, options, 0);
    if (together.status === 'granted') return this.#lease(together.leases);
    if (together.status === 'contended') return undefined;
    const leases: Lease[] = [];
    try {
      for (const { lock } of this.#members) {
        const lease = await lock.tryAcquire(options);
        if (lease === undefined) break;
        leases.push(lease);
      }
    } catch (error) {
      giveBack(leases);
      throw error;
    }
    if (leases.length === this.#members.length) {
      const set = this.#lease(leases);
      if (set.validForMs > (options?.minRemainingMs ?? 0)) return set;
    }
    giveBack(leases);
    return undefined;
  }

  async run<T>(work: (lease: MultiLease) => T | Promise<T>, options?: AllOptions): Promise<T> {
    if (typeof work !== 'function') throw mustBe('What run() works', 'a function', work);
    checkOptions(options);
    if (this.#members.some(({ parts }) => parts?.options.reentrant)) return this.#runNested(work, options);
    const set = (await this.acquire(options)) as LeaseSet;
    return workAndRelease(
      () => work(set),
      () => set.releaseQuietly(),
    );
  }

  /** One `run` inside the other: so members that ask for it re-enter what the caller holds already (docs/spec.md §5.2). */
  #runNested<T>(work: (lease: MultiLease) => T | Promise<T>, options: AllOptions | undefined): Promise<T> {
    const deadline = this.#clock.now() + this.#waitMs(options);
    const from = async (index: number, leases: readonly Lease[]): Promise<T> => {
      const member = this.#members[index];
      if (member === undefined) return await work(this.#lease(leases));
      const waitMs = Math.max(0, deadline - this.#clock.now());
      return member.lock.run((lease) => from(index + 1, [...leases, lease]), { ...options, waitMs });
    };
    return from(0, []);
  }

  #waitMs(options: AllOptions | undefined): number {
    const own = this.#members[0]?.parts?.options.waitMs ?? DEFAULT_WAIT_MS;
    const given = options?.waitMs === undefined ? own : options.waitMs;
    return checkDuration('waitMs', given, 0, Number.POSITIVE_INFINITY);
  }

  async #oneByOne(options: AllOptions | undefined, remainingMs: () => number): Promise<Lease[]> {
    const leases: Lease[] = [];
    try {
      for (const { lock } of this.#members) {
        leases.push(await lock.acquire({ ...options, waitMs: remainingMs() }));
      }
      return leases;
    } catch (error) {
      giveBack(leases);
      throw error;
    }
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
  for (const lease of leases) void lease[Symbol.asyncDispose]();
}

async function failed(set: LeaseSet, leases: readonly Lease[]): Promise<never> {
  try {
    set.assertValid();
  } finally {
    giveBack(leases);
  }
  throw invalidArgument('minRemainingMs is more than the members can give together. Use a longer ttlMs.');
}

function checkOptions(options: AllOptions | undefined): void {
  for (const key of ['within', 'steal']) {
    if (options !== undefined && options !== null && key in options)
      throw mustBe(key, 'absent in all()', undefined);
  }
}
