import type { FencedLease, Lock, LossReason } from '@locks/core';
import { isLockError } from '@locks/core';
import type { HeldLease, Participant } from '../checks/holder-checks.ts';
import type { OperationContext } from './operation-context.ts';
import { isRenewedInTime, isShortening, type OperationPlan, type ResourcePlan } from './plan.ts';

/** A lease of the workload, and what it can do in every mode. */
type AnyLease = HeldLease & {
  renew(ttlMs?: number): Promise<void>;
  release(): Promise<void>;
  downgrade?(): Promise<void>;
};

/** A promise settles some microtasks and one late timer after its reason, in milliseconds. */
const SETTLES_WITHIN_MS = 20;
/** A wait that ends with a timeout may end so much too early, in milliseconds. */
const EARLY_MS = 2;
/** Before its end a wait does not begin to try again what failed, in milliseconds. */
const RETRY_MS = 1_100;
/** What the margins of a lease take of it, that of a quorum and that of core: a part, and milliseconds. */
const MARGIN = 0.02;
const MARGIN_MS = 6;
/** How long a re-entry lasts, where two take turns, in milliseconds. */
const RE_ENTRY_MS = 4;
/** A release without an answer is repeated for so long, or until its lease ends, in milliseconds (docs/spec.md §2.5). */
const RELEASED_WITHIN_MS = 1_000;
/** Before the end of that time it is not repeated any more, in milliseconds. */
const LAST_PAUSE_MS = 250;
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
    const renewsItself = plan.renewal === 'auto' && plan.end !== 'forget';
    // A renewal is due in a third of the ttl that the lease has by then.
    const isExtended = plan.during === 'extend' || plan.during.includes('longer');
    const longestTtlMs = isExtended ? 2 * plan.ttlMs : plan.ttlMs;
    this.#by = {
      process: context.process,
      label,
      resources,
      startedAt,
      steals: plan.kind === 'steal',
      learnsWithinMs: context.isClean && renewsItself ? longestTtlMs / 2 + this.#roundTripMs + 50 : Infinity,
    };
    this.#abort = plan.abortAfterMs === undefined ? undefined : new AbortController();
  }

  /** By far enough for a request and its reply, where no message is slow. */
  get #roundTripMs(): number {
    return 10 * this.#context.latencyMs;
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
    const reentrant = this.#plan.during === 're-enter' || this.#plan.during === 're-enter twice';
    const lock = this.#lock(0, reentrant);
    await this.#asking(
      () =>
        lock.run(async (given) => {
          const lease = given as unknown as AnyLease;
          this.#context.checks.waitsNoMore(this.#by);
          this.#delivered(lease);
          try {
            await this.#context.process.sleep(this.#beforeMs);
            if (reentrant) await this.#reenter(lock, lease);
            else await this.#during(lease);
            await this.#context.process.sleep(this.#plan.holdMs - this.#beforeMs);
          } finally {
            this.#ended(lease);
          }
        }, this.#options()),
      true,
    );
  }

  /** What comes of the hold before the holder does something in it, in milliseconds. */
  get #beforeMs(): number {
    const { holdMs, duringAfter } = this.#plan;
    return Math.floor(holdMs * duringAfter);
  }

  /** Enters the lock inside of itself; those who enter beside each other take turns (docs/spec.md §5.3). */
  async #reenter(lock: Lock, lease: AnyLease): Promise<void> {
    const { process } = this.#context;
    const isTwice = this.#plan.during === 're-enter twice';
    let inside = 0;
    const enter = (): Promise<void> =>
      lock.run(
        async (inner) => {
          this.#checkReentry(lease, inner as unknown as HeldLease);
          inside += 1;
          if (inside > 1 && lease.validForMs > 0)
            process.world.violated('§5.3', `two re-entries of ${this.#by.label} are inside at the same time`);
          if (isTwice) await process.sleep(RE_ENTRY_MS);
          inside -= 1;
          // Of a stranger, who enters after the end of the lease.
        },
        { ttlMs: this.#plan.ttlMs, label: this.#by.label },
      );
    await Promise.all(isTwice ? [enter(), enter()] : [enter()]);
  }

  /** Calls something that waits, and holds it to its deadline (docs/spec.md §7.5) and to its abort (§7.8). */
  async #asking<T>(ask: () => Promise<T>, holds = false): Promise<T> {
    const { process, checks, isClean, isClosing } = this.#context;
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
    } catch (error) {
      const waitedMs = clock.monotonic() - startedAt;
      const { code } = error as { readonly code?: string };
      // It ends within its time, and not long before (docs/spec.md §7.5).
      if (
        !holds &&
        code === 'LOCK_TIMEOUT' &&
        waitedMs < waitMs - EARLY_MS &&
        this.#isPlain &&
        !this.#hasJumped
      )
        world.violated('§7.5', `${this.#by.label} gave up after ${waitedMs} ms, of ${waitMs} ms`);
      const hasTime = waitedMs < waitMs - RETRY_MS && this.#isPlain && !this.#hasJumped;
      // What fails passes here, always: it is tried again while there is time (docs/spec.md §13.2).
      if (!holds && code === 'LOCK_BACKEND' && hasTime && !isClosing())
        world.violated(
          '§13.2',
          `${this.#by.label} failed after ${waitedMs} ms, of ${waitMs} ms: ${String(error)}`,
        );
      if (kind === 'try' && code === 'LOCK_TIMEOUT')
        world.violated('§7.4', `${this.#by.label} waited, and asked for a single attempt`);
      throw error;
    } finally {
      checks.waitsNoMore(this.#by);
      const stood = process.isPaused || process.stalledUntil >= startedAtTrue;
      const limit = kind === 'try' ? ttlMs : waitMs;
      if (!holds && !stood) {
        const now = clock.monotonic();
        // Nobody waits before a steal (docs/spec.md §17.1).
        const stealMs = kind === 'steal' && isClean && !isClosing() ? 3 * this.#roundTripMs + 50 : Infinity;
        if (now - startedAt > stealMs)
          world.violated('§17.1', `${this.#by.label} waited for ${now - startedAt} ms to steal`);
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
      await process.sleep(this.#beforeMs);
      await this.#during(lease);
      await process.sleep(holdMs - this.#beforeMs);
    } catch (error) {
      this.#checkFailure(error);
    }
    this.#checkValidity(lease);
    ended();
    if (end === 'forget') return;
    const leftMs = lease.validForMs;
    const releasedAt = process.clock.monotonic();
    const releasedAtTrue = process.world.now;
    const first = lease.release();
    if (lease.validForMs > 0) process.world.violated('§3.3', `${this.#by.label} holds what it has released`);
    if (end === 'release twice') await Promise.allSettled([lease.release(), lease.release()]);
    const checkRepeated = (hasFailed: boolean): void => {
      const stood = process.isPaused || process.stalledUntil >= releasedAtTrue || this.#hasJumped;
      if (!stood && this.#plan.kind !== 'all')
        this.#checkRepeated(process.clock.monotonic() - releasedAt, leftMs, hasFailed);
    };
    try {
      await first;
      if (end !== 'release twice') checkRepeated(false);
      const [name = ''] = this.#by.resources;
      if (this.#plan.kind !== 'all') this.#context.released(this.#by.label, name, lease.acquisitionId);
    } catch (error) {
      if ((error as { readonly code?: string }).code === 'LOCK_BACKEND') checkRepeated(true);
      // Whoever holds a lease can release it (docs/spec.md §3.2).
      if (this.#isUndisturbed && leftMs > 2 * this.#roundTripMs + 20)
        process.world.violated('§3.2', `${this.#by.label} could not release its lease: ${String(error)}`);
      throw error;
    }
  }

  /** A release that gets no answer is repeated while its lease lasts (docs/spec.md §2.5): here every failure passes. */
  #checkRepeated(tookMs: number, leftMs: number, hasFailed: boolean): void {
    const { process, isClosing } = this.#context;
    const mostMs = Math.min(RELEASED_WITHIN_MS, leftMs);
    const isEarly = hasFailed && tookMs < mostMs - LAST_PAUSE_MS;
    if (isClosing() || (!isEarly && tookMs <= mostMs + SETTLES_WITHIN_MS)) return;
    process.world.violated(
      '§2.5',
      `${this.#by.label} released its lease, which lasted ${leftMs} ms, for ${tookMs} ms`,
    );
  }

  /** What a lease says of itself after a hold that nothing disturbed (docs/spec.md §4.2, §4.3). */
  #checkValidity(lease: AnyLease): void {
    const { world } = this.#context.process;
    const { renewal, end, during, ttlMs, holdMs, kind } = this.#plan;
    if (!this.#isUndisturbed || during !== 'nothing' || kind === 'all') return;
    const isManual = renewal === 'manual' || end === 'forget';
    // A hand-off is renewed once, whoever renews the rest (docs/spec.md §4.3).
    const most = this.#context.limitsHandOffs ? 1.35 : 1;
    if (isManual && holdMs > most * ttlMs + this.#roundTripMs + 20 && lease.validForMs > 0)
      world.violated('§4.3', `${this.#by.label} holds after its ttl, and nobody renewed its lease`);
    if (lease.validForMs > ttlMs) world.violated('§1.2', `${this.#by.label} counts on more than its ttl`);
  }

  /** Nothing failed, nobody took anything away, and the locks are open. */
  get #isUndisturbed(): boolean {
    const { isClean, isClosing, checks } = this.#context;
    return isClean && !isClosing() && !checks.mayBeTaken(this.#by);
  }

  /** One lock, and no operator's call. */
  get #isPlain(): boolean {
    return this.#plan.kind === 'acquire' || this.#plan.kind === 'run';
  }

  /** Somebody has set the wall clock: by it, time has passed. */
  get #hasJumped(): boolean {
    return this.#context.process.clock.hasJumped;
  }

  /** A renewal that was confirmed counts from its sending (docs/spec.md §1.2, §1.7). */
  #checkRenewed(lease: AnyLease, ttlMs: number): void {
    if (!this.#isUndisturbed) return;
    const left = lease.validForMs;
    const least = ttlMs * (1 - MARGIN) - MARGIN_MS - this.#roundTripMs;
    // Where core renews too, its renewal may still be under way, and may be the shorter one. A hand-off that the store limits is
    // renewed in any case (docs/spec.md §4.3).
    const isAlone =
      !this.#context.limitsHandOffs && (this.#plan.renewal === 'manual' || this.#plan.end === 'forget');
    if ((isAlone && left < least) || left > ttlMs)
      this.#context.process.world.violated(
        '§1.7',
        `${this.#by.label} renewed for ${ttlMs} ms, and its lease is valid for ${left} ms`,
      );
  }

  async #renew(lease: AnyLease, ttlMs: number): Promise<void> {
    await lease.renew(ttlMs);
    this.#checkRenewed(lease, ttlMs);
  }

  async #shorten(lease: AnyLease, ttlMs: number): Promise<void> {
    const { process, latencyMs } = this.#context;
    const renewal = this.#renew(lease, ttlMs);
    await this.#keepsTo(lease, ttlMs, renewal);
    await renewal;
    for (let looks = 0; looks < 3; looks += 1) {
      await process.sleep(1 + latencyMs);
      this.#checkShorter(lease, ttlMs);
    }
  }

  /** Renews for two times, and sends the second renewal before the first is answered. */
  async #renewTwice(lease: AnyLease, firstMs: number, secondMs: number): Promise<void> {
    const first = lease.renew(firstMs);
    const second = lease.renew(secondMs);
    const both = Promise.allSettled([first, second]);
    if (secondMs < firstMs) await this.#keepsTo(lease, secondMs, both);
    await both;
    await second;
  }

  /** Looks at a lease while its renewal for a shorter time is under way. */
  async #keepsTo(lease: AnyLease, ttlMs: number, renewal: Promise<unknown>): Promise<void> {
    const { process, latencyMs } = this.#context;
    let isAnswered = false;
    const answered = (): void => {
      isAnswered = true;
    };
    renewal.then(answered, answered);
    while (!isAnswered) {
      this.#checkShorter(lease, ttlMs);
      await process.sleep(1 + latencyMs / 2);
    }
  }

  /** Nothing makes a lease longer again, least of all the late reply to an earlier renewal (docs/spec.md §1.7). */
  #checkShorter(lease: AnyLease, ttlMs: number): void {
    if (lease.validForMs > ttlMs)
      this.#context.process.world.violated(
        '§1.7',
        `${this.#by.label} renewed for ${ttlMs} ms, and counts on more`,
      );
  }

  async #during(lease: AnyLease): Promise<void> {
    const { during, ttlMs, kind } = this.#plan;
    const shorterMs = Math.max(50, Math.floor(ttlMs / 2));
    switch (during) {
      case 'renew':
        return lease.renew();
      case 'extend':
        return this.#renew(lease, 2 * ttlMs);
      case 'shorten':
        return this.#shorten(lease, shorterMs);
      case 'longer, shorter':
        return this.#renewTwice(lease, 2 * ttlMs, shorterMs);
      case 'shorter, longer':
        return this.#renewTwice(lease, shorterMs, 2 * ttlMs);
      case 'downgrade':
        if (kind === 'all' || lease.mode.kind !== 'exclusive') return;
        this.#context.checks.downgrades(this.#by.resources[0] as string, lease);
        await lease.downgrade?.();
        return this.#context.checks.downgraded(this.#by.resources[0] as string, lease);
      case 're-enter':
      case 're-enter twice': {
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
    // Whoever enters after the end of the lease is a stranger.
    if (outer.validForMs <= 0) return;
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
    if (permits !== undefined) await locks.semaphore(name, permits).resize(this.#plan.limit);
  }

  #delivered(lease: HeldLease): void {
    const { checks, process, isClean, isClosing, isClosed } = this.#context;
    const name = (lease as unknown as { readonly name: string }).name;
    this.#hasHeld = true;
    if (isClosed()) process.world.violated('§12.2', `${this.#by.label} got ${name} of closed locks`);
    const readsSignal = this.#plan.holdMs % 3 !== 1;
    checks.delivered(this.#by, name, lease, readsSignal);
    if (lease.mode.kind === 'exclusive' && this.#isPlain)
      this.#context.cohortChecks?.delivered(this.#by, name, lease, {
        isPrompt: this.#context.answersAtOnce,
        isClean,
        keepsForMs: isClean && !this.#context.limitsHandOffs ? this.#plan.ttlMs : undefined,
      });
    const { clock } = process;
    const validUntil = clock.monotonic() + lease.validForMs;
    process.world.note(process.name, () => `${this.#by.label} holds ${name}, token ${lease.fencingToken}`);
    if (!readsSignal) return;
    lease.signal.addEventListener('abort', () => {
      const { reason } = lease.signal.reason as { readonly reason?: LossReason };
      process.world.note(process.name, () => `${this.#by.label} lost ${name}: ${reason}`);
      const stood = process.isPaused || process.stalledUntil >= this.#by.startedAt;
      if (stood || isClosing() || checks.mayBeTaken(this.#by)) return;
      const until = Math.max(validUntil, checks.countedUntil(name, lease));
      const isEarly = clock.monotonic() < until - EARLY_MS && !isShortening(this.#plan.during);
      if (reason === 'expired' && isEarly && !this.#hasJumped)
        process.world.violated('§1.5', `${this.#by.label} lost ${name} before its time`);
      if (TAKEN_AWAY.includes(reason) && !this.#context.mayGrantLate)
        process.world.violatedUnlessLost(
          '§3.1',
          `${this.#by.label} lost ${name} (${reason}), and nobody took it away`,
        );
      else if (isClean && isRenewedInTime(this.#plan, this.#roundTripMs))
        process.world.violated('§4.2', `${this.#by.label} lost ${name} (${reason}) without any fault`);
    });
  }

  #ended(lease: HeldLease): void {
    const { checks, process } = this.#context;
    const name = (lease as unknown as { readonly name: string }).name;
    process.world.note(process.name, () => `${this.#by.label} ends its hold of ${name}`);
    checks.ended(name, lease);
  }

  /** Somebody who waits for less may give up before the first answer, as where each of its writes meets one of a holder that renews. */
  get #hasTime(): boolean {
    return (
      this.#plan.waitMs > 100 + 2 * this.#roundTripMs &&
      this.#plan.kind !== 'all' &&
      this.#plan.kind !== 'try'
    );
  }

  #lock(index: number, reentrant = false): Lock {
    const { locks, resources } = this.#context;
    const { name, permits } = resources[this.#plan.resources[index] as number] as ResourcePlan;
    if (permits !== undefined && !this.#plan.isOdd) return locks.semaphore(name, permits, { reentrant });
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
      ...(permits !== undefined &&
        !this.#plan.isOdd &&
        kind !== 'all' &&
        !during.startsWith('re-enter') && { weight }),
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
