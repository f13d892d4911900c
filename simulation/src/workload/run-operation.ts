import type { BaseLease, Lock } from '@locks/core';
import type { HeldLease, Participant } from '../checks/holder-checks.ts';
import { type AnyLease, MiddleOfHold } from './middle-of-hold.ts';
import { OperationChecks } from './operation-checks.ts';
import type { OperationContext } from './operation-context.ts';
import type { OperationPlan, ResourcePlan } from './plan.ts';

/** Does one operation of the workload. */
export class RunningOperation {
  readonly #context: OperationContext;
  readonly #plan: OperationPlan;
  readonly #by: Participant;
  readonly #checks: OperationChecks;
  readonly #middle: MiddleOfHold;
  readonly #abort: AbortController | undefined;
  #abortedAt: number | undefined;
  #hasHeld = false;

  constructor(context: OperationContext, plan: OperationPlan, label: string) {
    this.#context = context;
    this.#plan = plan;
    const resources = plan.resources.map((index) => (context.resources[index] as ResourcePlan).name);
    const startedAt = context.process.world.now;
    const renewsItself = plan.renewal === 'auto' && plan.end !== 'forget';
    // A renewal is due in a third of the ttl that the lease has by then.
    const isExtended = plan.during === 'extend' || plan.during.includes('longer');
    const longestTtlMs = isExtended ? 2 * plan.ttlMs : plan.ttlMs;
    const renewedWithinMs = longestTtlMs / 2 + OperationChecks.roundTripMs(context) + 50;
    this.#by = {
      process: context.process,
      label,
      resources,
      startedAt,
      steals: plan.kind === 'steal',
      learnsWithinMs: context.isClean && renewsItself ? renewedWithinMs : Infinity,
    };
    this.#checks = new OperationChecks(context, plan, this.#by);
    this.#middle = new MiddleOfHold(context, plan, this.#by, this.#checks);
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
      this.#failed(error);
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
      if (this.#isAhead) await this.#context.process.caughtUp();
      const leases = set.leases as readonly HeldLease[];
      leases.forEach((lease) => this.#seesGranted(lease));
      await this.#hold(set as unknown as AnyLease, () => leases.forEach((each) => this.#ended(each)));
      return;
    }
    const lease = (await this.#asking<AnyLease | undefined>(() =>
      kind === 'try' ? this.#lock(0).tryAcquire(this.#tryOptions()) : this.#lock(0).acquire(this.#options()),
    )) as AnyLease | undefined;
    if (lease === undefined) return;
    if (this.#isAhead) await this.#context.process.caughtUp();
    checks.waitsNoMore(this.#by);
    this.#seesGranted(lease);
    await this.#hold(lease, () => this.#ended(lease));
  }

  async #runWork(): Promise<void> {
    const reentrant = this.#plan.during === 're-enter' || this.#plan.during === 're-enter twice';
    const lock = this.#lock(0, reentrant);
    await this.#asking(
      () =>
        lock.run(async (given) => {
          const lease = given as unknown as AnyLease;
          if (this.#isAhead) await this.#context.process.caughtUp();
          this.#context.checks.waitsNoMore(this.#by);
          this.#seesGranted(lease);
          try {
            await this.#context.process.sleep(this.#beforeMs);
            if (reentrant) await this.#middle.reenter(lock, lease);
            else await this.#middle.with(lease, () => this.#lock(0));
            await this.#context.process.sleep(this.#plan.holdMs - this.#beforeMs);
          } finally {
            this.#ended(lease);
          }
        }, this.#options()),
      true,
    );
  }

  /** The process stood still in the present event: the checks wait until the others are at its time. */
  get #isAhead(): boolean {
    return this.#context.process.world.isAhead;
  }

  /** What comes of the hold before the holder does something in it, in milliseconds. */
  get #beforeMs(): number {
    const { holdMs, duringAfter } = this.#plan;
    return Math.floor(holdMs * duringAfter);
  }

  /** Calls something that waits. `holds`: what it calls ends with the hold, and not with the wait. */
  async #asking<T>(ask: () => Promise<T>, holds = false): Promise<T> {
    const { process, checks } = this.#context;
    const { waitMs, abortAfterMs } = this.#plan;
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
    } catch (error) {
      if (this.#isAhead) await this.#context.process.caughtUp();
      if (!holds) this.#checks.waitFailed(clock.monotonic() - startedAt, error);
      this.#checks.attemptFailed(error);
      throw error;
    } finally {
      checks.waitsNoMore(this.#by);
      if (!holds) this.#checks.waitEnded({ startedAt, startedAtTrue, abortedAt: this.#abortedAt });
    }
  }

  async #hold(lease: AnyLease, ended: () => void): Promise<void> {
    const { process } = this.#context;
    const { holdMs, end, kind } = this.#plan;
    try {
      await process.sleep(this.#beforeMs);
      await this.#middle.with(lease, () => this.#lock(0));
      await process.sleep(holdMs - this.#beforeMs);
    } catch (error) {
      this.#failed(error);
    }
    if (this.#isAhead) await this.#context.process.caughtUp();
    process.look(() => this.#checks.heldOn(lease));
    // From the call on the process no longer believes in the lease (docs/spec.md §19.1).
    const transferred = end === 'transfer' ? this.#transfer(lease) : undefined;
    ended();
    // Without an answer the store may have the hold for some time: it is abandoned in the background.
    if (transferred !== undefined) return transferred;
    if (end === 'forget') return;
    const leftMs = process.look(() => lease.validForMs);
    const sending = { startedAt: process.clock.monotonic(), startedAtTrue: process.world.now };
    const first = lease.release();
    if (lease.validForMs > 0) process.world.violated('§3.3', `${this.#by.label} holds what it has released`);
    if (end === 'release twice') await Promise.allSettled([lease.release(), lease.release()]);
    try {
      await first;
      if (this.#isAhead) await this.#context.process.caughtUp();
      if (end !== 'release twice') this.#checks.releaseEnded(sending, leftMs, false);
      const [name = ''] = this.#by.resources;
      if (kind !== 'all') this.#context.released(this.#by.label, name, lease.acquisitionId);
    } catch (error) {
      if (this.#isAhead) await this.#context.process.caughtUp();
      if ((error as { readonly code?: string }).code === 'LOCK_BACKEND')
        this.#checks.releaseEnded(sending, leftMs, true);
      this.#checks.releaseFailed(sending.startedAt, leftMs, error);
      throw error;
    }
  }

  /** Lets the lease go on in another process. */
  async #transfer(lease: AnyLease): Promise<void> {
    const { transfer, adoptIn, process, isClean, hasForcedEnds, isClosing, latencyMs } = this.#context;
    const { transfer: plan } = this.#plan;
    if (plan === undefined) return;
    const { label } = this.#by;
    try {
      const handed = transfer(lease as unknown as BaseLease);
      if (lease.validForMs > 0) process.world.violated('§19.1', `${label} holds what it transfers`);
      const ticket = await handed;
      process.world.note(process.name, () => `${label} hands ${ticket.name} over to p${plan.to}`);
      const isInTime = plan.afterMs + 40 * latencyMs + 50 < ticket.ttlMs / 2;
      const mustSucceed = isClean && !hasForcedEnds && !isClosing() && !plan.twice && isInTime;
      for (const _ of plan.twice ? [1, 2] : [1])
        adoptIn(plan.to, { ticket, label: `${label}>`, plan, mustSucceed });
    } catch (error) {
      this.#failed(error);
    }
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
    if (permits !== undefined) await locks.semaphore(name, permits).resize(this.#plan.limit);
  }

  #seesGranted(lease: HeldLease): void {
    this.#context.process.look(() => this.#delivered(lease));
  }

  #delivered(lease: HeldLease): void {
    const { checks, cohortChecks, process, isClean, hasForcedEnds, isClosed, answersAtOnce } = this.#context;
    const { ttlMs, holdMs, kind } = this.#plan;
    const name = nameOf(lease);
    this.#hasHeld = true;
    if (isClosed()) process.world.violated('§12.2', `${this.#by.label} got ${name} of closed locks`);
    const readsSignal = holdMs % 3 !== 1;
    checks.delivered(this.#by, name, lease, readsSignal);
    if (lease.mode.kind === 'exclusive' && (kind === 'acquire' || kind === 'run'))
      cohortChecks?.delivered(this.#by, name, lease, {
        renewedWithinMs: OperationChecks.roundTripMs(this.#context),
        isPrompt: answersAtOnce,
        keepsOrder: isClean && !hasForcedEnds,
        keepsForMs: isClean ? ttlMs : undefined,
      });
    process.world.note(process.name, () => `${this.#by.label} holds ${name}, token ${lease.fencingToken}`);
    this.#checks.delivered(lease);
    if (readsSignal) this.#checks.watch(lease, name);
  }

  #ended(lease: HeldLease): void {
    const { checks, process } = this.#context;
    const name = nameOf(lease);
    process.world.note(process.name, () => `${this.#by.label} ends its hold of ${name}`);
    checks.ended(name, lease);
  }

  #lock(index: number, reentrant = false): Lock {
    const { locks, resources } = this.#context;
    const { name, permits } = resources[this.#plan.resources[index] as number] as ResourcePlan;
    if (permits !== undefined && !this.#plan.isOdd) return locks.semaphore(name, permits, { reentrant });
    if (this.#plan.mode === 'exclusive') return locks.lock(name, { reentrant });
    return locks.readWriteLock(name, { reentrant }).read;
  }

  #tryOptions() {
    const { waitMs: _, ...options } = this.#options();
    return options;
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
      ...(permits !== undefined &&
        !this.#plan.isOdd &&
        kind !== 'all' &&
        !during.startsWith('re-enter') && { weight }),
    };
  }

  #failed(error: unknown): void {
    const { process, gaveUp } = this.#context;
    if (!this.#hasHeld) gaveUp(this.#by.label);
    const what = error instanceof Error ? error.message : String(error);
    process.world.note(process.name, () => `${this.#by.label} fails: ${what}`);
    if (error !== undefined && error === this.#abort?.signal.reason) return;
    this.#checks.failed(error, this.#hasHeld);
  }
}

function nameOf(lease: HeldLease): string {
  return (lease as unknown as { readonly name: string }).name;
}
