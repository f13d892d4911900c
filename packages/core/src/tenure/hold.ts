import type { Grant, LossReason } from '../backend/types.ts';
import { LockError, quote } from '../errors.ts';
import { runOutside } from '../scope/context.ts';
import type { Scope } from '../scope/scope.ts';

/** What a hold needs of the manager that made it. */
export interface HoldOwner {
  readonly backendName: string;
  now(): number;
  /** Told once, when a hold is lost. */
  holdLost(hold: Hold, reason: LossReason): void;
}

/**
 * How much sooner than the store a holder ends its lease: clocks may run apart by 1 %, plus 2 ms for rounding
 * (the drift of the Redlock algorithm; `docs/spec.md` §1.2).
 */
export function driftMargin(validForMs: number): number {
  return validForMs * 0.01 + 2;
}

/** When a holder ends a lease that is valid for so long since `countedFrom`. */
export function endOf(countedFrom: number, validForMs: number): number {
  return countedFrom + validForMs - driftMargin(validForMs);
}

/** A renewal may go along with others in this last part of the wait for it. */
const BATCH_WINDOW = 1 / 4;
/** A renewal is not repeated sooner than this. */
const MIN_RENEWAL_MS = 5;

/** A renewal that was sent. */
export interface Renewal {
  readonly ttlMs: number;
  readonly sentAt: number;
  /** How many renewals the holder had asked for when it was sent. */
  readonly asked: number;
  /** The shortest ttl among it and those that had no answer when it was sent: the store may carry them out after it. */
  readonly mostMs: number;
  /** Its call ended, and it was not confirmed. */
  unclear: boolean;
}

/** From when, and for how long, a grant is valid: as it says itself, or as a renewal before it was handed out did. */
export type Since = Pick<Grant, 'countedFrom' | 'validForMs'>;

const NONE: readonly Renewal[] = [];

/** One grant as the holder knows it: until when it is valid, and whether it was released or lost. Handles share it. */
export class Hold {
  readonly owner: HoldOwner;
  /** Another one after a downgrade. */
  grant: Grant;
  readonly autoRenew: boolean;
  readonly grantedAt: number;
  /** Automatic renewal stops here. */
  readonly renewUntil: number;
  /** The ttl of the next renewal. */
  ttlMs: number;
  /** When the keeper renews at the latest; `Infinity` for never. */
  renewAt = Number.POSITIVE_INFINITY;
  /** From when it does, if a round for others comes by. */
  renewFrom = Number.POSITIVE_INFINITY;
  /** When the keeper reports a slow hold; `Infinity` for never. */
  slowAt: number;
  /** How many handles are not released yet. */
  count = 1;
  released = false;
  /** The store was told, or may have been, to end it before its ttl: it is renewed once, also where renewal is manual. */
  provisional: boolean;
  /** A downgrade was sent: the store may have shared it, whether or not we hear of it. */
  mayBeShared = false;
  scope: Scope | undefined;
  /** Stops listening to a loss that the store may push. */
  unfollow: (() => void) | undefined;
  /** Rises with every renewal that the holder asks for: replies to earlier ones no longer say how long it is valid. */
  #renewals = 0;
  /** Renewals that have no clear answer yet: the store may carry them out still. */
  #open = NONE;
  /** When the last confirmed renewal was sent. */
  #confirmedAt = Number.NEGATIVE_INFINITY;
  #deadline: number;
  #lost: LockError | undefined;
  #controller: AbortController | undefined;

  constructor(
    owner: HoldOwner,
    grant: Grant,
    ttlMs: number,
    autoRenew: boolean,
    maxHoldMs: number,
    now: number,
    since: Since = grant,
  ) {
    this.owner = owner;
    this.grant = grant;
    this.ttlMs = ttlMs;
    this.autoRenew = autoRenew;
    this.grantedAt = now;
    this.renewUntil = now + maxHoldMs;
    this.slowAt = maxHoldMs === Number.POSITIVE_INFINITY ? now + 2 * ttlMs : Number.POSITIVE_INFINITY;
    const { countedFrom, validForMs = ttlMs } = since;
    // Counted from before sending: the store may have started the lease at any later moment (docs/spec.md §1.2).
    this.#deadline = endOf(countedFrom, validForMs);
    // A grant shorter than its ttl (a hand-off) is topped up once even where renewal is manual.
    this.provisional = validForMs < ttlMs;
    if (this.provisional) this.renewIn((this.#deadline - now) / 3, now);
    else if (autoRenew) this.renewIn(ttlMs / 3, countedFrom);
  }

  /** On the owner's clock: nobody else can hold before it. */
  get deadline(): number {
    const session = this.grant.session;
    return session === undefined ? this.#deadline : session.validUntil();
  }

  /** The loss, told by the clock if by nothing else yet: right after a stall, before any timer ran. */
  get lost(): LockError | undefined {
    return this.#lost === undefined && !this.released ? this.lostAt(this.owner.now()) : this.#lost;
  }

  lostAt(now: number): LockError | undefined {
    if (now >= this.deadline) this.loseByTime();
    return this.#lost;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#lost !== undefined) this.#controller.abort(this.#lost);
    }
    void this.lost;
    return this.#controller.signal;
  }

  loseByTime(): void {
    if (this.grant.session !== undefined) this.lose('session-lost');
    else this.lose(this.#open.length > 0 ? 'unconfirmed' : 'expired');
  }

  lose(reason: LossReason): void {
    if (this.#lost === undefined && !this.released) this.foundLost(reason);
  }

  /** The loss, also when it comes out only at the release. */
  foundLost(reason: LossReason): LockError {
    const name = this.grant.request.resource;
    this.#lost = new LockError('LOCK_LOST', `The lease on ${quote(name)} was lost: ${EXPLANATIONS[reason]}`, {
      resource: name,
      backend: this.owner.backendName,
      reason,
    });
    const lost = this.#lost;
    // Whoever listens is told in no reentrant scope, least of all in that of whoever found it out.
    runOutside(() => {
      this.#controller?.abort(lost);
      this.owner.holdLost(this, reason);
    });
    return lost;
  }

  /** Plans the next automatic renewal; `Infinity` for none. */
  renewIn(ms: number, from: number): void {
    const wait = Math.max(ms, MIN_RENEWAL_MS);
    this.renewAt = from + wait;
    this.renewFrom = from + wait * (1 - BATCH_WINDOW);
  }

  /** Before sending a renewal. */
  renewalSent(ttlMs: number, sentAt: number, asked: boolean): Renewal {
    if (asked) {
      // The store may shorten the lease at any moment from now, whether or not we hear of it.
      this.#deadline = Math.min(this.#deadline, endOf(sentAt, ttlMs));
      this.#renewals += 1;
    }
    const mostMs = Math.min(ttlMs, ...this.#open.map((earlier) => earlier.ttlMs));
    const renewal: Renewal = { ttlMs, sentAt, asked: this.#renewals, mostMs, unclear: false };
    this.#open = [...this.#open, renewal];
    return renewal;
  }

  /** The store confirmed a renewal. A stale reply moves nothing. */
  renewed(renewal: Renewal, validForMs = renewal.ttlMs): void {
    this.#open = this.#open.filter((other) => other !== renewal);
    const { asked, sentAt, mostMs } = renewal;
    if (asked !== this.#renewals || this.released || this.#lost !== undefined) return;
    // The reply to an earlier renewal, come late: the store's end is what the later one set.
    if (sentAt < this.#confirmedAt) return;
    this.#confirmedAt = sentAt;
    // Reckoned with in `mostMs`, once.
    this.#open = this.#open.filter(({ unclear }) => !unclear);
    this.provisional = mostMs < Math.min(validForMs, renewal.ttlMs);
    const span = this.provisional ? mostMs : validForMs;
    this.#deadline = endOf(sentAt, span);
    this.renewIn(this.autoRenew || this.provisional ? span / 3 : Number.POSITIVE_INFINITY, sentAt);
  }
}

const EXPLANATIONS: Readonly<Record<LossReason, string>> = {
  expired:
    'its time ran out before it was renewed or released. Is the event loop blocked, or the ttl too short?',
  unconfirmed: 'its time ran out while the store did not confirm its renewal.',
  'taken-over': 'another acquisition holds it now.',
  'force-released':
    'the store no longer has it: it was released by force, its key was deleted, or data was lost.',
  'session-lost': 'the session with the store ended.',
  closed: 'its lock manager was closed.',
};

export function isLossReason(value: unknown): value is LossReason {
  return typeof value === 'string' && Object.hasOwn(EXPLANATIONS, value);
}
