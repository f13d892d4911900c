import type { Grant, RenewalStatus } from '../backend/types.ts';
import { runOutside } from '../async-context.ts';
import { identityOf, type LockEvent, publish } from '../events.ts';
import { followSignal } from '../follow-signal.ts';
import { processWide } from '../process-wide.ts';
import { type Protocol, shownLease } from '../protocol.ts';
import type { Clock } from './clock.ts';
import { isLossReason, type LeaseOwner, LeaseState, type SentRenewal, type Validity } from './lease-state.ts';
import { watchHandle } from './leaked-leases.ts';
import { renewalStatusOf } from './renewal-status.ts';
import { Timer } from './timer.ts';

/** The monitors of this process that have leases, of all managers and of all copies of core. */
const monitors = processWide('monitors@1', () => new Set<Pick<LeaseMonitor, 'endOverdue'>>());

/** The options of an acquire that concern its lease. */
interface HoldOptions {
  readonly ttlMs: number;
  readonly autoRenew: boolean;
  readonly maxHoldMs: number;
}

/** The watchdog of one manager: renews its leases and reports their loss in time, with one timer and one call for all. */
export class LeaseMonitor {
  readonly #protocol: Protocol;
  readonly #clock: Clock;
  readonly #timer: Timer;
  readonly #leases = new Set<LeaseState>();
  /** When the last block of the event loop was told. */
  #blockToldAt = 0;
  /** The class of the leases. */
  readonly State: typeof LeaseState = LeaseState;

  constructor(protocol: Protocol, clock: Clock) {
    this.#protocol = protocol;
    this.#clock = clock;
    this.#timer = new Timer(clock, (now) => this.#onTimer(now));
  }

  get leases(): ReadonlySet<LeaseState> {
    return this.#leases;
  }

  /**
   * Starts to monitor the lease of a validated grant. `undefined`: the grant came too late to be of use, or is lost already; such
   * a lease is never delivered (docs/spec.md §1.4).
   */
  start(
    owner: LeaseOwner,
    grant: Grant,
    { ttlMs, autoRenew, maxHoldMs }: HoldOptions,
    now: number,
    validity: Validity,
  ): LeaseState | undefined {
    // A timer ends leases too, but after a blocked event loop this grant may be read before the timer of its former holder runs
    // (docs/spec.md §8.2).
    if (monitors.size > 0) for (const monitor of monitors) monitor.endOverdue();
    const lease = new this.State(owner, grant, ttlMs, autoRenew, maxHoldMs, now, validity);
    const { lost } = grant;
    if (lease.deadline <= now || lost?.aborted) return undefined;
    if (this.#leases.size === 0) monitors.add(this);
    this.#leases.add(lease);
    this.reschedule(lease);
    if (lost !== undefined) {
      lease.unfollow = followSignal(lost, () => {
        lease.lose(isLossReason(lost.reason) ? lost.reason : 'session-lost');
      });
    }
    return lease;
  }

  /** Stops monitoring a lease: from here on nothing renews it (docs/spec.md §4.1). Gives whether it was monitored. */
  remove(lease: LeaseState, _why?: string, now = this.#clock.now()): boolean {
    // Synchronous work in `run` is followed by its release, before any timer. A lease that a shorter one outlives leaves it to that one.
    if (3 * this.blockedMs(now) >= lease.ttlMs) this.tellBlock(now);
    const wasMonitored = this.#leases.delete(lease);
    if (wasMonitored && this.#leases.size === 0) monitors.delete(this);
    lease.unfollow?.();
    return wasMonitored;
  }

  /** Arms the timer after the times of a lease moved. A release may have ended the monitoring meanwhile. */
  reschedule(lease: LeaseState): void {
    const { nextEventAt } = lease;
    if (nextEventAt < this.#timer.armedFor && this.#leases.has(lease)) this.#timer.arm(nextEventAt);
    if (this.#protocol.isHeard && this.#leases.has(lease)) {
      const { deadline: until, renewUntil } = lease;
      const renews = lease.autoRenew && renewUntil > until;
      this.#protocol.tell({ step: 'believes', acquisition: shownLease(lease.grant), until, renews });
    }
  }

  /** For how long the event loop has stood still at least, in milliseconds: the timer has been due for so long. */
  blockedMs(now: number): number {
    return Math.max(0, Math.round(now - this.#timer.dueSince));
  }

  /** The stack of what blocked the event loop, where a thread has taken it. */
  stackOfBlock?(): string | undefined;

  /** Tells of a long block of the event loop once, before the leases that were held meanwhile end (docs/spec.md §8.5). */
  tellBlock(now: number): void {
    const blockedMs = this.blockedMs(now);
    if (now - blockedMs < this.#blockToldAt) return;
    let ttlMs = Number.POSITIVE_INFINITY;
    let backend = '';
    let leases = 0;
    for (const lease of this.#leases) {
      // The code that ran first after the block may have got others.
      if (lease.grantedAt > now - blockedMs) continue;
      leases += 1;
      ttlMs = Math.min(ttlMs, lease.ttlMs);
      backend = lease.owner.backendName;
    }
    if (3 * blockedMs < ttlMs) return;
    this.#blockToldAt = now;
    const told = { backend, blockedMs, ttlMs, leases, stack: this.stackOfBlock?.() };
    runOutside(() => publish('locks:loop-blocked', told));
  }

  /** Ends the leases whose time is over. */
  endOverdue(): void {
    const now = this.#clock.now();
    if (now >= this.#timer.armedFor) this.#endOverdueAt(now);
  }

  stop(): void {
    this.#timer.stop();
  }

  /** Ends leases that are over, renews those that are due, and gives the time of the next event. */
  #onTimer(now: number): number {
    this.tellBlock(now);
    this.#endOverdueAt(now);
    for (const lease of this.#leases) if (now >= lease.slowAt) reportSlow(lease, now);
    // Renewals come after the losses: listeners of a loss may release other leases, which are not renewed (docs/spec.md §4.1).
    const due: LeaseState[] = [];
    for (const lease of this.#leases) {
      if (now >= lease.renewUntil && !lease.repeatsRenewal) lease.renewIn(Number.POSITIVE_INFINITY, now);
      else if (now >= lease.renewFrom && !lease.isKept?.(now)) due.push(lease);
    }
    // A renewal is repeated in a third of the time that is left, until the store answers or the lease ends.
    for (const lease of due) watchHandle(lease);
    for (const lease of due) lease.renewIn(Math.min(lease.deadline - now, lease.ttlMs) / 3, now);
    if (due.length > 0) void this.#renew(due, now);
    let next = Number.POSITIVE_INFINITY;
    for (const lease of this.#leases) next = Math.min(next, lease.nextEventAt);
    return next;
  }

  #endOverdueAt(now: number): void {
    for (const lease of this.#leases) if (now >= lease.deadline) lease.loseByTime();
  }

  async #renew(leases: readonly LeaseState[], sentAt: number): Promise<void> {
    const items = leases.map(({ grant, ttlMs }) => ({ grant, ttlMs }));
    const renewals = leases.map((lease) => lease.renewalSent(lease.ttlMs, sentAt, false));
    const deadline = leases.reduce((latest, lease) => Math.max(latest, lease.deadline), sentAt);
    let answer: unknown;
    try {
      answer = await this.#protocol.calls.renew(items, { now: () => this.#clock.now(), deadline });
    } catch (error) {
      // An exception means that nothing is known, not that anything is lost (docs/spec.md §1.5).
      answer = leases.map(() => ({ status: 'unknown', error }));
    }
    leases.forEach((lease, index) => {
      this.#apply(renewalStatusOf(answer, index), lease, renewals[index] as SentRenewal);
    });
  }

  #apply(renewalStatus: RenewalStatus, lease: LeaseState, renewal: SentRenewal): void {
    if (lease.released) return;
    switch (renewalStatus.status) {
      case 'held':
        lease.renewed(renewal, renewalStatus.validForMs);
        this.reschedule(lease);
        return;
      case 'lost':
        lease.lose(renewalStatus.reason);
        return;
      case 'unknown':
        renewal.unclear = true;
        publish('locks:renewal-failed', {
          ...identity(lease),
          remainingMs: lease.deadline - this.#clock.now(),
          error: renewalStatus.error,
        });
        return;
      default:
        return renewalStatus satisfies never;
    }
  }
}

/** The fields that identify a lease in every event. */
export function identity(lease: LeaseState): LockEvent {
  return identityOf(lease.grant.request, lease.owner.backendName);
}

function reportSlow(lease: LeaseState, now: number): void {
  lease.slowAt = Number.POSITIVE_INFINITY;
  publish('locks:slow-hold', { ...identity(lease), heldMs: now - lease.grantedAt, ttlMs: lease.ttlMs });
}
