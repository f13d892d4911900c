import type { LockBackend, LossReason, Standing } from '../backend/types.ts';
import { publish } from '../events.ts';
import type { Clock } from './clock.ts';
import type { Hold, Renewal } from './hold.ts';
import { Timer } from './timer.ts';

/** Of all managers of this process, those that keep something. */
const keeping = new Set<Keeper>();

/**
 * Tells the holders of this process whose time is over. A timer does that, but not where the event loop stood still:
 * then a grant may be read before the timer of the one who held until now has its turn (docs/spec.md §8.2).
 */
export function tellOverdue(): void {
  if (keeping.size > 0) for (const keeper of keeping) keeper.tellOverdue();
}

/** The watchdog: keeps all leases of a manager alive and tells their loss in time, with one timer and one call a round. */
export class Keeper {
  readonly #backend: LockBackend;
  readonly #clock: Clock;
  readonly #timer: Timer;
  readonly #holds = new Set<Hold>();

  constructor(backend: LockBackend, clock: Clock) {
    this.#backend = backend;
    this.#clock = clock;
    this.#timer = new Timer(clock, (now) => this.#round(now));
  }

  get holds(): ReadonlySet<Hold> {
    return this.#holds;
  }

  add(hold: Hold): void {
    if (this.#holds.size === 0) keeping.add(this);
    this.#holds.add(hold);
    this.#timer.noLaterThan(nextEvent(hold));
  }

  /** From here on nothing renews the hold (docs/spec.md §4.1). */
  remove(hold: Hold): void {
    if (this.#holds.delete(hold) && this.#holds.size === 0) keeping.delete(this);
  }

  tellOverdue(): void {
    const now = this.#clock.now();
    if (now >= this.#timer.armedFor) this.#tellEnded(now);
  }

  /** The hold's times moved. */
  reschedule(hold: Hold): void {
    if (this.#holds.has(hold)) this.#timer.noLaterThan(nextEvent(hold));
  }

  stop(): void {
    this.#timer.stop();
  }

  /** Loses what is past its end, renews what is due, and gives the time of the next round. */
  #round(now: number): number {
    this.#tellEnded(now);
    for (const hold of this.#holds) if (now >= hold.slowAt) reportSlow(hold, now);
    // Only then: whoever is told of a loss may release others, and those are not renewed (docs/spec.md §4.1).
    const due: Hold[] = [];
    for (const hold of this.#holds) {
      if (now >= hold.renewUntil && !hold.provisional) hold.renewIn(Number.POSITIVE_INFINITY, now);
      else if (now >= hold.renewFrom) due.push(hold);
    }
    for (const hold of due) {
      // Repeated at a third of what is left, until the store answers or the lease ends.
      hold.renewIn(Math.min(hold.deadline - now, hold.ttlMs) / 3, now);
    }
    let next = Number.POSITIVE_INFINITY;
    if (due.length > 0) void this.#renew(due, now);
    for (const hold of this.#holds) next = Math.min(next, nextEvent(hold));
    return next;
  }

  #tellEnded(now: number): void {
    for (const hold of this.#holds) if (now >= hold.deadline) hold.loseByTime();
  }

  async #renew(holds: readonly Hold[], sentAt: number): Promise<void> {
    const items = holds.map((hold) => ({ grant: hold.grant, ttlMs: hold.ttlMs }));
    const renewals = holds.map((hold) => hold.renewalSent(hold.ttlMs, sentAt, false));
    const deadline = holds.reduce((latest, hold) => Math.max(latest, hold.deadline), sentAt);
    let answer: unknown;
    try {
      answer = await this.#backend.renew(items, { now: () => this.#clock.now(), deadline });
    } catch (error) {
      // An exception means that nothing is known, not that anything is lost (docs/spec.md §1.5).
      answer = holds.map(() => ({ status: 'unknown', error }));
    }
    holds.forEach((hold, index) => {
      this.#settle(hold, standingOf(answer, index), renewals[index] as Renewal);
    });
  }

  #settle(hold: Hold, standing: Standing, renewal: Renewal): void {
    if (hold.released) return;
    switch (standing.status) {
      case 'held':
        hold.renewed(renewal, standing.validForMs);
        this.reschedule(hold);
        return;
      case 'lost':
        hold.lose(standing.reason);
        return;
      case 'unknown':
        renewal.unclear = true;
        publish('locks:renewal-failed', {
          ...identity(hold),
          remainingMs: hold.deadline - this.#clock.now(),
          error: standing.error,
        });
        return;
      default:
        return standing satisfies never;
    }
  }
}

/** Whether a backend's `validForMs` can be reckoned with: absent, or a number. */
export function isDuration(value: unknown): boolean {
  return value === undefined || (typeof value === 'number' && !Number.isNaN(value));
}

/** What a renewal's answer says of one item. What is no standing at all means that nothing is known. */
export function standingOf(answer: unknown, index: number): Standing {
  const standing = Array.isArray(answer)
    ? (answer[index] as Partial<Standing> | null | undefined)
    : undefined;
  switch (standing?.status) {
    case 'lost':
    case 'unknown':
      return standing as Standing;
    case 'held':
      if (isDuration(standing.validForMs)) return standing as Standing;
      break;
    default:
  }
  return {
    status: 'unknown',
    error: new Error('the backend broke its contract: it gave no standing for the lease'),
  };
}

/** What every event says of a hold. */
export function identity(hold: Hold): { resource: string; backend: string; acquisitionId: string } {
  const { resource, acquisitionId } = hold.grant.request;
  return { resource, backend: hold.owner.backendName, acquisitionId };
}

/** Tells the loss on the diagnostics channel. */
export function publishLoss(hold: Hold, reason: LossReason, now: number): void {
  publish('locks:lost', { ...identity(hold), heldMs: now - hold.grantedAt, reason });
}

function nextEvent(hold: Hold): number {
  return Math.min(hold.renewAt, hold.deadline, hold.slowAt);
}

function reportSlow(hold: Hold, now: number): void {
  hold.slowAt = Number.POSITIVE_INFINITY;
  publish('locks:slow-hold', { ...identity(hold), heldMs: now - hold.grantedAt, ttlMs: hold.ttlMs });
}
