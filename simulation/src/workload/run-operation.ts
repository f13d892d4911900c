import type { FencedLease, Lock, LockManager, LossReason } from '@locks/core';
import { isLockError } from '@locks/core';
import type { HeldLease, HolderChecks, Participant } from '../checks/holder-checks.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import type { OperationPlan, ResourcePlan } from './plan.ts';

/** A lease of the workload, and what it can do in every mode. */
type AnyLease = HeldLease & {
  renew(ttlMs?: number): Promise<void>;
  release(): Promise<void>;
  downgrade?(): Promise<void>;
};

/** What the operations of one process share. */
export interface OperationContext {
  readonly process: SimulatedProcess;
  readonly locks: LockManager;
  readonly resources: readonly ResourcePlan[];
  readonly checks: HolderChecks;
  /** No fault happens in this run: what fails is a violation. */
  readonly isClean: boolean;
  /** How long a message may be on its way, in milliseconds. */
  readonly longestDelayMs: number;
  readonly isClosing: () => boolean;
  /** The user was told that an acquire failed. */
  readonly gaveUp: (label: string) => void;
}

/** A promise settles some microtasks and one late timer after its reason, in milliseconds. */
const SETTLES_WITHIN_MS = 20;
/** Reasons for which nobody but an operator, or a store that lost data, ends a lease. */
const TAKEN_AWAY: readonly (LossReason | undefined)[] = ['taken-over', 'force-released'];
const EXPECTED = ['LOCK_TIMEOUT', 'LOCK_LOST', 'LOCK_BACKEND', 'LOCK_CLOSED', 'LOCK_CONFLICT'] as const;

/** Does one operation of the workload, and holds what the user sees of it to the specification. */
export class RunningOperation {
  readonly #context: OperationContext;
  readonly #plan: OperationPlan;
  readonly #by: Participant;
  readonly #abort: AbortController | undefined;
  #abortedAt: number | undefined;
  #hasHeld = false;

  constructor(context: OperationContext, plan: OperationPlan, label: string) {
    this.#context = context;
    this.#plan = plan;
    const resources = plan.resources.map((index) => (context.resources[index] as ResourcePlan).name);
    const startedAt = context.process.world.now;
    this.#by = { process: context.process, label, resources, startedAt, steals: plan.kind === 'steal' };
    this.#abort = plan.abortAfterMs === undefined ? undefined : new AbortController();
  }

  async run(): Promise<void> {
    const { process, checks, locks } = this.#context;
    const [name = ''] = this.#by.resources;
    try {
      switch (this.#plan.kind) {
        case 'acquire':
        case 'steal':
        case 'try':
        case 'all':
          return await this.#acquire();
        case 'run':
          return await this.#runWork();
        case 'force-release':
          return await this.#takingAway(() => locks.forceRelease(name).then(() => undefined));
        case 'resize':
          return await this.#takingAway(() => this.#resize());
        default:
          this.#plan.kind satisfies never;
      }
    } catch (error) {
      this.#checkFailure(error);
    } finally {
      if (!process.isCrashed) checks.waitsNoMore(this.#by);
    }
  }

  async #acquire(): Promise<void> {
    if (this.#plan.kind === 'steal') await this.#takingAway(() => this.#acquireAndHold());
    else await this.#acquireAndHold();
  }

  async #acquireAndHold(): Promise<void> {
    const { kind } = this.#plan;
    const { checks } = this.#context;
    if (kind === 'all') {
      const locks = this.#by.resources.map((_, index) => this.#lock(index));
      const set = await this.#asking(() => this.#context.locks.all(locks).acquire(this.#options()));
      const leases = set.leases as readonly HeldLease[];
      leases.forEach((lease) => this.#delivered(lease));
      await this.#hold(set as unknown as AnyLease, () => leases.forEach((each) => this.#ended(each)));
      return;
    }
    const lease = (await this.#asking<AnyLease | undefined>(() =>
      kind === 'try' ? this.#lock(0).tryAcquire(this.#options()) : this.#lock(0).acquire(this.#options()),
    )) as AnyLease | undefined;
    if (lease === undefined) return;
    checks.waitsNoMore(this.#by);
    this.#delivered(lease);
    await this.#hold(lease, () => this.#ended(lease));
  }

  async #runWork(): Promise<void> {
    const reentrant = this.#plan.during === 're-enter';
    const lock = this.#lock(0, reentrant);
    await this.#asking(
      () =>
        lock.run(async (given) => {
          const lease = given as unknown as AnyLease;
          this.#context.checks.waitsNoMore(this.#by);
          this.#delivered(lease);
          try {
            if (reentrant)
              await lock.run((inner) => this.#checkReentry(lease, inner as unknown as HeldLease));
            else await this.#during(lease);
            await this.#context.process.sleep(this.#plan.holdMs);
          } finally {
            this.#ended(lease);
          }
        }, this.#options()),
      true,
    );
  }

  /** Calls something that waits, and holds it to its deadline (docs/spec.md §7.5) and to its abort (§7.8). */
  async #asking<T>(ask: () => Promise<T>, holds = false): Promise<T> {
    const { process, checks } = this.#context;
    const { waitMs, kind, abortAfterMs, ttlMs } = this.#plan;
    const { clock, world } = process;
    if (waitMs > 0) checks.waits(this.#by);
    if (abortAfterMs !== undefined)
      process.setTimeout(() => {
        this.#abortedAt = clock.monotonic();
        this.#abort?.abort(new Error('the user aborts'));
      }, abortAfterMs);
    const startedAt = clock.monotonic();
    const startedAtTrue = world.now;
    try {
      return await ask();
    } finally {
      checks.waitsNoMore(this.#by);
      const stood = process.isPaused || process.stalledUntil >= startedAtTrue;
      const limit = kind === 'try' ? ttlMs : waitMs;
      if (!holds && !stood) {
        const now = clock.monotonic();
        if (now - startedAt > limit + SETTLES_WITHIN_MS)
          world.violated('§7.5', `${this.#by.label} waited for ${now - startedAt} ms, of ${limit} ms`);
        if (this.#abortedAt !== undefined && now - this.#abortedAt > SETTLES_WITHIN_MS)
          world.violated('§7.8', `${this.#by.label} was aborted ${now - this.#abortedAt} ms ago`);
      }
    }
  }

  async #hold(lease: AnyLease, ended: () => void): Promise<void> {
    const { process } = this.#context;
    const { holdMs, end } = this.#plan;
    try {
      await this.#during(lease);
      await process.sleep(holdMs);
    } catch (error) {
      this.#checkFailure(error);
    }
    ended();
    if (end === 'forget') return;
    const first = lease.release();
    if (end === 'release twice') await Promise.allSettled([lease.release(), lease.release()]);
    await first;
  }

  async #during(lease: AnyLease): Promise<void> {
    const { during, ttlMs, kind } = this.#plan;
    switch (during) {
      case 'renew':
        return lease.renew();
      case 'extend':
        return lease.renew(2 * ttlMs);
      case 'shorten':
        return lease.renew(Math.max(50, Math.floor(ttlMs / 2)));
      case 'downgrade':
        if (kind === 'all' || lease.mode.kind !== 'exclusive') return;
        this.#context.checks.downgrades(this.#by.resources[0] as string, lease);
        return lease.downgrade?.();
      case 're-enter': {
        if (kind === 'all') return;
        const within = lease as unknown as FencedLease;
        const inner = await this.#lock(0).acquire({ within, waitMs: 100 });
        this.#checkReentry(lease, inner as unknown as HeldLease);
        return inner.release();
      }
      case 'nothing':
        return;
      default:
        during satisfies never;
    }
  }

  #checkReentry(outer: HeldLease, inner: HeldLease): void {
    if (inner.acquisitionId !== outer.acquisitionId || inner.fencingToken !== outer.fencingToken)
      this.#context.process.world.violated('§6.2', `${this.#by.label} re-entered and got another token`);
  }

  /** What an operator does: from here on, and until a late copy of the request has arrived, leases may be taken away. */
  async #takingAway(work: () => Promise<void>): Promise<void> {
    const { checks, longestDelayMs } = this.#context;
    const ends = this.#by.resources.map((name) => checks.takesAway(name, longestDelayMs));
    try {
      await work();
    } finally {
      for (const end of ends) end();
    }
  }

  async #resize(): Promise<void> {
    const { locks, resources } = this.#context;
    const { name, permits } = resources[this.#plan.resources[0] as number] as ResourcePlan;
    if (permits !== undefined) await locks.semaphore(name, permits).resize(permits);
  }

  #delivered(lease: HeldLease): void {
    const { checks, process, isClean, isClosing } = this.#context;
    const name = (lease as unknown as { readonly name: string }).name;
    this.#hasHeld = true;
    const readsSignal = this.#plan.holdMs % 3 !== 1;
    checks.delivered(this.#by, name, lease, readsSignal);
    process.world.note(process.name, () => `${this.#by.label} holds ${name}, token ${lease.fencingToken}`);
    if (!readsSignal) return;
    lease.signal.addEventListener('abort', () => {
      const { reason } = lease.signal.reason as { readonly reason?: LossReason };
      process.world.note(process.name, () => `${this.#by.label} lost ${name}: ${reason}`);
      const stood = process.isPaused || process.stalledUntil >= this.#by.startedAt;
      if (stood || isClosing() || checks.mayBeTaken(this.#by)) return;
      if (TAKEN_AWAY.includes(reason))
        process.world.violated('§3.1', `${this.#by.label} lost ${name} (${reason}), and nobody took it away`);
      else if (isClean && this.#plan.renewal === 'auto' && this.#plan.end !== 'forget')
        process.world.violated('§4.2', `${this.#by.label} lost ${name} (${reason}) without any fault`);
    });
  }

  #ended(lease: HeldLease): void {
    const { checks, process } = this.#context;
    const name = (lease as unknown as { readonly name: string }).name;
    process.world.note(process.name, () => `${this.#by.label} ends its hold of ${name}`);
    checks.ended(name, lease);
  }

  /** Somebody who waits for less may give up before the first answer. */
  get #hasTime(): boolean {
    return this.#plan.waitMs > 100 && this.#plan.kind !== 'all' && this.#plan.kind !== 'try';
  }

  #lock(index: number, reentrant = false): Lock {
    const { locks, resources } = this.#context;
    const { name, permits } = resources[this.#plan.resources[index] as number] as ResourcePlan;
    if (permits !== undefined) return locks.semaphore(name, permits, { reentrant });
    if (this.#plan.mode === 'exclusive') return locks.lock(name, { reentrant });
    return locks.readWriteLock(name, { reentrant }).read;
  }

  #options() {
    const { ttlMs, waitMs, renewal, end, kind, weight, resources, during } = this.#plan;
    const permits = this.#context.resources[resources[0] as number]?.permits;
    return {
      ttlMs,
      waitMs,
      label: this.#by.label,
      renewal: end === 'forget' ? ('manual' as const) : renewal,
      ...(this.#abort && { signal: this.#abort.signal }),
      ...(kind === 'steal' && { steal: true }),
      ...(permits !== undefined && kind !== 'all' && during !== 're-enter' && { weight }),
    };
  }

  #checkFailure(error: unknown): void {
    const { process, isClean, isClosing, gaveUp } = this.#context;
    if (!this.#hasHeld) gaveUp(this.#by.label);
    const { world } = process;
    const what = error instanceof Error ? error.message : String(error);
    world.note(process.name, () => `${this.#by.label} fails: ${what}`);
    if (error === this.#abort?.signal.reason && error !== undefined) return;
    const { code } = error as { readonly code?: string };
    // A user who aborts or takes locks away gets these too.
    const known =
      isLockError(error) &&
      [...EXPECTED, 'LOCK_NOT_HELD', 'LOCK_REENTRANT', 'LOCK_UNSUPPORTED'].some((each) => each === code);
    if (!known)
      world.violated('§13.1', `${this.#by.label} failed with ${error instanceof Error ? error.stack : what}`);
    // A release is repeated until its lease ends, which may be very soon (docs/spec.md §2.5).
    else if (isClean && code === 'LOCK_BACKEND' && !isClosing() && !this.#hasHeld && this.#hasTime)
      world.violated('§13.1', `${this.#by.label} failed without any fault: ${what}`);
  }
}
