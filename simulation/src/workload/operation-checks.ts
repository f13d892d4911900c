import type { LossReason } from '@locks/core';
import { isLockError } from '@locks/core';
import type { HeldLease, Participant } from '../checks/holder-checks.ts';
import type { OperationContext } from './operation-context.ts';
import { isRenewedInTime, isShortening, type OperationPlan } from './plan.ts';

/** A promise settles some microtasks and one late timer after its reason, in milliseconds. */
const SETTLES_WITHIN_MS = 20;
/** A wait that ends with a timeout may end so much too early, in milliseconds. */
const EARLY_MS = 2;
/** Before its end a wait does not begin to try again what failed, in milliseconds. */
const RETRY_MS = 1_100;
/** What the margins of a lease take of it, that of a quorum and that of core: a part, and milliseconds. */
const MARGIN = 0.02;
const MARGIN_MS = 6;
/** Before the end of that time it is not repeated any more, in milliseconds. */
const LAST_PAUSE_MS = 250;
/** A call lasts so much longer than without a stall: the stall, and twice the time by which a timer was late. */
const MOST_STOOD = 3;
/** Reasons for which nobody but an operator, or a store that lost data, ends a lease. */
const TAKEN_AWAY: readonly (LossReason | undefined)[] = ['taken-over', 'force-released'];
const EXPECTED = [
  ...['LOCK_TIMEOUT', 'LOCK_LOST', 'LOCK_BACKEND', 'LOCK_CLOSED', 'LOCK_CONFLICT'],
  // A user who aborts or takes locks away gets these too.
  ...['LOCK_NOT_HELD', 'LOCK_REENTRANT', 'LOCK_UNSUPPORTED'],
];

/** A wait that has ended. */
export interface EndedWait {
  readonly startedAt: number;
  /** True time. */
  readonly startedAtTrue: number;
  readonly abortedAt: number | undefined;
}

/** Holds what the user of one operation sees to the specification. */
export class OperationChecks {
  readonly #context: OperationContext;
  readonly #plan: OperationPlan;
  readonly #by: Participant;

  constructor(context: OperationContext, plan: OperationPlan, by: Participant) {
    this.#context = context;
    this.#plan = plan;
    this.#by = by;
  }

  /** By far enough for a request and its reply, where no message is slow. */
  static roundTripMs({ latencyMs }: OperationContext): number {
    return 10 * latencyMs;
  }

  /** A wait failed: within its time, and not long before (docs/spec.md §7.5). */
  waitFailed(waitedMs: number, error: unknown): void {
    const { process, isClosing, isShared, failsForGood } = this.#context;
    const { waitMs } = this.#plan;
    const { code } = error as { readonly code?: string };
    if (!this.#isPlain || this.#hasJumped) return;
    if (code === 'LOCK_TIMEOUT' && waitedMs < waitMs - EARLY_MS)
      process.world.violated('§7.5', `${this.#by.label} gave up after ${waitedMs} ms, of ${waitMs} ms`);
    // What fails passes here, always: it is tried again while there is time (docs/spec.md §13.2).
    if (code === 'LOCK_BACKEND' && waitedMs < waitMs - RETRY_MS && !isClosing() && !isShared && !failsForGood)
      process.world.violated(
        '§13.2',
        `${this.#by.label} failed after ${waitedMs} ms, of ${waitMs} ms: ${String(error)}`,
      );
  }

  /** A single attempt does not wait (docs/spec.md §7.4). */
  attemptFailed(error: unknown): void {
    const { code } = error as { readonly code?: string };
    if (this.#plan.kind === 'try' && code === 'LOCK_TIMEOUT')
      this.#violated('§7.4', 'waited, and asked for a single attempt');
  }

  /** A wait ended, whether it failed or not: by its deadline (docs/spec.md §7.5), and at an abort (§7.8). */
  waitEnded({ startedAt, startedAtTrue, abortedAt }: EndedWait): void {
    const { process, isClean, isClosing } = this.#context;
    const { waitMs, kind, ttlMs } = this.#plan;
    const stoodMs = process.stoodBeside(startedAtTrue);
    // A step of the wall clock looks like a stall of the event loop, for which a wait may last as long again (docs/spec.md §2.9).
    // A stall counts as no time, and at most as long again (docs/spec.md §2.9).
    const limit = (kind === 'try' ? ttlMs : waitMs) * (this.#hasJumped ? 2 : 1) + MOST_STOOD * stoodMs;
    const now = process.clock.monotonic();
    // Nobody waits before a steal (docs/spec.md §17.1).
    const stealMs = kind === 'steal' && isClean && !isClosing() ? 3 * this.#roundTripMs + 50 : Infinity;
    if (now - startedAt > stealMs) this.#violated('§17.1', `waited for ${now - startedAt} ms to steal`);
    if (now - startedAt > limit + SETTLES_WITHIN_MS)
      this.#violated('§7.5', `waited for ${now - startedAt} ms, of ${limit} ms`);
    if (abortedAt !== undefined && now - abortedAt > SETTLES_WITHIN_MS + MOST_STOOD * stoodMs)
      this.#violated('§7.8', `was aborted ${now - abortedAt} ms ago`);
  }

  /** Whoever is granted has most of his ttl (docs/spec.md §1.4). */
  delivered(lease: HeldLease): void {
    const { kind, ttlMs } = this.#plan;
    // The members of a set were granted one after the other.
    if (!this.#isUndisturbed || this.#context.isOfSession || kind === 'all') return;
    if (lease.validForMs < ttlMs * (2 / 3 - MARGIN) - MARGIN_MS - this.#roundTripMs)
      this.#violated('§1.4', `got a lease with ${lease.validForMs} ms of ${ttlMs} left`);
  }

  /** The user has got a lease: its end is no surprise (docs/spec.md §1.5, §3.1, §4.2). */
  watch(lease: HeldLease, name: string): void {
    const { checks, process, isClean, isClosing, mayGrantLate, readsStale, thread } = this.#context;
    const { clock, world } = process;
    const validUntil = clock.monotonic() + lease.validForMs;
    lease.signal.addEventListener('abort', () => {
      const { code, reason } = lease.signal.reason as {
        readonly code?: string;
        readonly reason?: LossReason;
      };
      // The caller asked the work to stop: the lease is held on (docs/spec.md §7.8).
      if (code !== 'LOCK_LOST') return;
      world.note(process.name, () => `${this.#by.label} lost ${name}: ${reason}`);
      if (isClosing() || checks.mayBeTaken(this.#by)) return;
      const until = Math.max(validUntil, checks.countedUntil(name, lease));
      const isEarly = clock.monotonic() < until - EARLY_MS && !isShortening(this.#plan.during);
      if (reason === 'expired' && isEarly && !this.#hasJumped)
        world.violatedUnlessLost('§1.5', `${this.#by.label} lost ${name} before its time`);
      // While a renewal of the holder is under way, the thread has not got the lease back.
      if (
        thread?.keepsAll === true &&
        this.#plan.during === 'nothing' &&
        isRenewedInTime(this.#plan, this.#roundTripMs)
      )
        this.#violated('§20.3', `lost ${name} (${reason}), and its thread could renew it`);
      // Whoever stood still for longer than the lease finds that others hold.
      const stood = this.#stoodSince(this.#by.startedAt);
      if (stood && clock.monotonic() >= until - EARLY_MS) return;
      if (TAKEN_AWAY.includes(reason) && !mayGrantLate && !readsStale)
        world.violatedUnlessLost(
          '§3.1',
          `${this.#by.label} lost ${name} (${reason}), and nobody took it away`,
        );
      else if (isClean && isRenewedInTime(this.#plan, this.#roundTripMs))
        this.#violated('§4.2', `lost ${name} (${reason}) without any fault`);
    });
  }

  /** What a lease says of itself after a hold that nothing disturbed (docs/spec.md §4.2, §4.3). */
  heldOn(lease: HeldLease): void {
    const { renewal, end, during, ttlMs, holdMs, kind } = this.#plan;
    if (!this.#isUndisturbed || this.#context.isOfSession) return;
    if (during !== 'nothing' || kind === 'all') return;
    const isManual = renewal === 'manual' || end === 'forget';
    if (isManual && holdMs > ttlMs + this.#roundTripMs + 20 && lease.validForMs > 0)
      this.#violated('§4.3', 'holds after its ttl, and nobody renewed its lease');
    if (lease.validForMs > ttlMs) this.#violated('§1.2', 'counts on more than its ttl');
  }

  /**
   * Renewals that were confirmed count from their sending (docs/spec.md §1.2, §1.7).
   *
   * @param tookMs - the time from the call to its end: a compare and swap may lose many races
   */
  renewed(lease: HeldLease, ttlMs: number, tookMs: number): void {
    if (!this.#isUndisturbed) return;
    const left = lease.validForMs;
    const least = ttlMs * (1 - MARGIN) - MARGIN_MS - tookMs;
    // Where core renews too, its renewal may still be under way, and may be the shorter one.
    const isAlone = this.#plan.renewal === 'manual' || this.#plan.end === 'forget';
    if ((isAlone && left < least) || left > ttlMs)
      this.#violated('§1.7', `renewed for ${ttlMs} ms, and its lease is valid for ${left} ms`);
  }

  /** Nothing makes a lease longer again, least of all the late reply to an earlier renewal (docs/spec.md §1.7). */
  shortened(lease: HeldLease, ttlMs: number): void {
    // It is sent once the thread has given the lease back (docs/spec.md §20.5).
    if (this.#context.thread !== undefined) return;
    if (lease.validForMs > ttlMs) this.#violated('§1.7', `renewed for ${ttlMs} ms, and counts on more`);
  }

  reentered(outer: HeldLease, inner: HeldLease): void {
    // Whoever enters after the end of the lease is a stranger.
    if (outer.validForMs <= 0) return;
    if (inner.acquisitionId !== outer.acquisitionId || inner.fencingToken !== outer.fencingToken)
      this.#violated('§6.2', 're-entered and got another token');
  }

  /**
   * A release ended. One that gets no answer is repeated while its lease lasts (docs/spec.md §2.5): here every failure passes.
   *
   * @param leftMs - how much was left of the lease when it was released
   */
  releaseEnded(
    { startedAt, startedAtTrue }: Omit<EndedWait, 'abortedAt'>,
    leftMs: number,
    hasFailed: boolean,
  ): void {
    const { process, isClosing, isShared } = this.#context;
    if (this.#hasJumped || this.#plan.kind === 'all' || isClosing()) return;
    const stoodMs = process.stoodBeside(startedAtTrue);
    const tookMs = process.clock.monotonic() - startedAt;
    const mostMs = Math.min(this.#context.releaseBudgetMs, leftMs);
    const isEarly = hasFailed && !isShared && !this.#context.failsForGood && tookMs < mostMs - LAST_PAUSE_MS;
    const latestMs = mostMs + SETTLES_WITHIN_MS + this.#context.releasesBeforeMs + MOST_STOOD * stoodMs;
    if (isEarly || tookMs > latestMs)
      this.#violated('§2.5', `released its lease, which lasted ${leftMs} ms, for ${tookMs} ms`);
  }

  /** Whoever holds a lease can release it (docs/spec.md §3.2), also beside a stall, while the lease lasts (§2.9). */
  releaseFailed(startedAt: number, leftMs: number, error: unknown): void {
    const { process, onlyStands, isClosing } = this.#context;
    const { code } = error as { readonly code?: string };
    const isInTime = process.clock.monotonic() - startedAt < leftMs - SETTLES_WITHIN_MS;
    if (onlyStands && code === 'LOCK_BACKEND' && isInTime && !isClosing())
      this.#violated('§2.9', `could not release its lease beside a store that answers: ${String(error)}`);
    if (this.#isUndisturbed && leftMs > 2 * this.#roundTripMs + 20)
      this.#violated('§3.2', `could not release its lease: ${String(error)}`);
  }

  /** An operation fails with the errors of the specification only (docs/spec.md §13.1). */
  failed(error: unknown, hasHeld: boolean): void {
    const { isClean, onlyStands, isClosing } = this.#context;
    const { code } = error as { readonly code?: string };
    if (!isLockError(error) || !EXPECTED.some((each) => each === code))
      this.#violated('§13.1', `failed with ${error instanceof Error ? error.stack : String(error)}`);
    // A release is repeated until its lease ends, which may be very soon (docs/spec.md §2.5).
    else if (
      (isClean || (onlyStands && !isOfALateGrant(error))) &&
      code === 'LOCK_BACKEND' &&
      !isClosing() &&
      !hasHeld &&
      this.#hasTime
    )
      this.#violated(isClean ? '§13.1' : '§2.9', `failed without any fault: ${error.message}`);
  }

  get #roundTripMs(): number {
    return OperationChecks.roundTripMs(this.#context);
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

  /** Somebody who waits for less may give up before the first answer, as where each of its writes meets one of a holder that renews. */
  get #hasTime(): boolean {
    const { waitMs, kind } = this.#plan;
    return waitMs > 100 + 2 * this.#roundTripMs && kind !== 'all' && kind !== 'try';
  }

  /** Somebody has set the wall clock: by it, time has passed. */
  get #hasJumped(): boolean {
    return this.#context.process.clock.hasJumped;
  }

  /** Whether the process stands still, or did after this true time. */
  #stoodSince(at: number): boolean {
    const { isPaused, stalledUntil } = this.#context.process;
    return isPaused || stalledUntil >= at;
  }

  #violated(clause: string, what: string): void {
    this.#context.process.world.violated(clause, `${this.#by.label} ${what}`);
  }
}

/** Whoever stands still for longer than the ttl gets a grant that is over, and may have no time for another attempt. */
function isOfALateGrant({ message }: Error): boolean {
  return message.includes('the grant arrived lost');
}
