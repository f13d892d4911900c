import { runOutside } from '../async-context.ts';
import type { Grant, LossReason } from '../backend/types.ts';
import { LockError, quote } from '../errors.ts';
import { identityOf, publish, renewedChannel } from '../events.ts';
import type { Protocol } from '../protocol.ts';

/** The manager that acquired a lease, as far as the lease needs it. */
export interface LeaseOwner {
  readonly backendName: string;
  readonly protocol: Protocol;
  now(): number;
  /** For how long the event loop has stood still at least, in milliseconds. */
  blockedMs(now: number): number;
  /** Called once, when the lease is lost. */
  leaseLost(lease: LeaseState, reason: LossReason): void;
}

/**
 * The time at which a holder ends a lease that the store keeps for `validForMs` from `countedFrom` on. It is earlier than the store's
 * by a margin: clocks may run apart by 1 %, plus 2 ms for rounding (the drift of the Redlock algorithm; docs/spec.md §1.2).
 */
export function endOf(countedFrom: number, validForMs: number): number {
  return countedFrom + validForMs - (validForMs * 0.01 + 2);
}

/** The last part of the wait for a renewal, in which a lease may be renewed together with others. */
const BATCH_WINDOW = 1 / 4;
const MIN_RENEWAL_MS = 5;

/** A renewal that was sent. */
export interface SentRenewal {
  readonly ttlMs: number;
  readonly sentAt: number;
  /** How many renewals the holder had requested when this one was sent. */
  readonly requests: number;
  /** The shortest ttl of this renewal and of those unanswered when it was sent: the store may carry them out after it. */
  readonly shortestMs: number;
  /** For how long the event loop had stood still at least when it was sent. */
  readonly blockedMs: number;
  /** Whether the call ended without confirming the renewal. */
  unclear: boolean;
}

/** The validity of a grant, since when and for how long: as the grant says, or a renewal before it was delivered. */
export type Validity = Pick<Grant, 'countedFrom' | 'validForMs'>;

const NONE: readonly SentRenewal[] = [];

/** The client's state of one lease: its deadline, and whether it was released or lost. All handles of the lease share it. */
export class LeaseState {
  readonly owner: LeaseOwner;
  /** The grant of the lease; replaced by a downgrade. */
  grant: Grant;
  readonly autoRenew: boolean;
  readonly grantedAt: number;
  /** When automatic renewal stops, and a hold in a session ends. */
  readonly renewUntil: number;
  /** The ttl of the next renewal. */
  ttlMs: number;
  /** When the monitor renews the lease at the latest; `Infinity` for never. */
  renewAt = Number.POSITIVE_INFINITY;
  /** When the monitor renews the lease at the earliest, together with others that are due. */
  renewFrom = Number.POSITIVE_INFINITY;
  /** When the monitor reports that the lease is held for long; `Infinity` for never. */
  slowAt: number;
  /** The number of handles not released yet. */
  holdCount = 1;
  released = false;
  /**
   * Whether the last renewal counts for less than it asked for, since a shorter one may overtake it. It is then repeated,
   * also where renewal is manual (docs/spec.md §1.7).
   */
  repeatsRenewal = false;
  /** Whether a downgrade was sent: the store may have made the lease shared, whether or not its answer arrives. */
  mayBeShared = false;
  /**
   * The handle that the holder got. It is referenced from here until the first renewal only: from then on a handle that nobody has is
   * found out (`leaked-leases.ts`).
   */
  handle: object | undefined;
  /** Called when the lease is lost: ends re-entries. */
  onLost: (() => void) | undefined;
  /** Stops following the signal by which the store reports a loss. */
  unfollow: (() => void) | undefined;
  /** The number of renewals that the holder requested: replies to renewals sent before the last one no longer move the end. */
  #requests = 0;
  /** Renewals without a clear answer: the store may still carry them out. */
  #unconfirmed = NONE;
  /** When the last confirmed renewal was sent. */
  #confirmedAt = Number.NEGATIVE_INFINITY;
  #deadline: number;
  /** For how long the lease was valid at its grant, or at the renewal that set `#deadline`. */
  #validForMs: number;
  #lost: LockError | undefined;
  #controller: AbortController | undefined;

  constructor(
    owner: LeaseOwner,
    grant: Grant,
    ttlMs: number,
    autoRenew: boolean,
    maxHoldMs: number,
    now: number,
    { countedFrom, validForMs = ttlMs }: Validity,
  ) {
    this.owner = owner;
    this.grant = grant;
    this.ttlMs = ttlMs;
    this.autoRenew = autoRenew;
    this.grantedAt = now;
    this.renewUntil = now + maxHoldMs;
    this.slowAt = maxHoldMs === Number.POSITIVE_INFINITY ? now + 2 * ttlMs : Number.POSITIVE_INFINITY;
    // The deadline counts from before sending: the store may have started the lease at any later moment (docs/spec.md §1.2).
    this.#deadline = endOf(countedFrom, validForMs);
    this.#validForMs = validForMs;
    if (autoRenew) this.renewIn(Math.min(validForMs, ttlMs) / 3, countedFrom);
  }

  /** When the lease ends, on the owner's clock: nobody else can hold the resource before. */
  get deadline(): number {
    // A session keeps its holds for as long as it lives, renewed or not: core ends this one (docs/spec.md §4.2).
    return this.grant.session === undefined ? this.#deadline : Math.min(this.keptUntil, this.renewUntil);
  }

  /** Until when the store keeps the hold for certain, unless something ends it there. */
  get keptUntil(): number {
    return this.grant.session?.validUntil() ?? this.#deadline;
  }

  /** Whether a renewal has no clear answer: the store may still carry it out. */
  get isUnconfirmed(): boolean {
    return this.#unconfirmed.length > 0;
  }

  /** Whether something other than the monitor has renewed the lease, so that it need not. */
  isKept?(now: number): boolean;

  /** When the monitor has something to do for this lease. */
  get nextEventAt(): number {
    return Math.min(this.renewAt, this.deadline, this.slowAt);
  }

  /** The loss, also where only the clock shows it: right after a stall, before any timer ran. */
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

  /** What ends the lease at its deadline. */
  get endByTime(): 'expired' | 'session-lost' {
    if (this.grant.session === undefined || this.owner.now() < this.keptUntil) return 'expired';
    return 'session-lost';
  }

  loseByTime(): void {
    const isUnconfirmed = this.grant.session === undefined && this.isUnconfirmed;
    this.lose(isUnconfirmed ? 'unconfirmed' : this.endByTime);
  }

  lose(reason: LossReason): void {
    if (this.#lost === undefined && !this.released) this.foundLost(reason);
  }

  /** Ends the lease as lost, also when only its release finds that out. */
  foundLost(reason: LossReason): LockError {
    const lockName = this.grant.request.resource;
    const { owner } = this;
    const lost = new LockError(
      'LOCK_LOST',
      `The lease on ${quote(lockName)} was lost: ${this.#explain(reason)}`,
      { lockName, backend: owner.backendName, reason, blockedMs: owner.blockedMs(owner.now()) },
    );
    this.#lost = lost;
    // Listeners run in no reentrant scope, least of all in that of the code that found the loss.
    runOutside(() => {
      this.#controller?.abort(lost);
      this.owner.leaseLost(this, reason);
    });
    return lost;
  }

  #explain(reason: LossReason): string {
    if (reason !== 'expired') return EXPLANATIONS[reason];
    // A lease whose end lies past `maxHoldMs` was renewed in time for as long as it was to be renewed.
    if (this.deadline >= this.renewUntil) {
      const maxHoldMs = Math.round(this.renewUntil - this.grantedAt);
      return `its maxHoldMs of ${maxHoldMs} ms was over. Release it earlier, or pass a longer maxHoldMs.`;
    }
    return this.autoRenew ? EXPLANATIONS[reason] : NOT_RENEWED;
  }

  /** Plans the next automatic renewal; `Infinity` for none. */
  renewIn(ms: number, from: number): void {
    const wait = Math.max(ms, MIN_RENEWAL_MS);
    this.renewAt = from + wait;
    this.renewFrom = from + wait * (1 - BATCH_WINDOW);
  }

  /**
   * Notes a renewal before it is sent.
   *
   * @param isRequested - by the holder, and not by the monitor
   */
  renewalSent(ttlMs: number, sentAt: number, isRequested: boolean): SentRenewal {
    if (isRequested) {
      // The store may shorten the lease at any moment from now, whether or not its answer arrives.
      const end = endOf(sentAt, ttlMs);
      if (end < this.#deadline) [this.#deadline, this.#validForMs] = [end, ttlMs];
      this.#requests += 1;
    }
    const shortestMs = Math.min(ttlMs, ...this.#unconfirmed.map((earlier) => earlier.ttlMs));
    const renewal = {
      ttlMs,
      sentAt,
      requests: this.#requests,
      shortestMs,
      blockedMs: this.owner.blockedMs(sentAt),
      unclear: false,
    };
    this.#unconfirmed = [...this.#unconfirmed, renewal];
    return renewal;
  }

  /** The time left of the lease, and the validity of which it is left, in milliseconds. */
  shareLeft(now: number): { remainingMs: number; validForMs: number } {
    return { remainingMs: this.deadline - now, validForMs: this.#validForMs };
  }

  /**
   * Moves the end: the store confirmed a renewal. A stale reply moves nothing.
   *
   * @param keptMs - how long the store keeps the hold; `undefined`: for the ttl that was asked for
   */
  renewed(renewal: SentRenewal, keptMs: number | undefined): void {
    const validForMs = keptMs ?? renewal.ttlMs;
    this.#unconfirmed = this.#unconfirmed.filter((other) => other !== renewal);
    const { requests, sentAt, shortestMs, blockedMs } = renewal;
    if (requests !== this.#requests || this.released || this.#lost !== undefined) return;
    // A stale reply to an earlier renewal moves nothing: the later renewal set the end at the store.
    if (sentAt < this.#confirmedAt) return;
    this.#confirmedAt = sentAt;
    // `shortestMs` accounts for the unclear renewals: each counts once.
    this.#unconfirmed = this.#unconfirmed.filter(({ unclear }) => !unclear);
    this.repeatsRenewal = shortestMs < Math.min(validForMs, renewal.ttlMs);
    const keptForMs = this.repeatsRenewal ? shortestMs : validForMs;
    if (renewedChannel.hasSubscribers) {
      const identity = identityOf(this.grant.request, this.owner.backendName);
      publish('locks:renewed', { ...identity, ...this.shareLeft(this.owner.now()), blockedMs });
    }
    this.#deadline = endOf(sentAt, keptForMs);
    this.#validForMs = keptForMs;
    this.renewIn(this.autoRenew || this.repeatsRenewal ? keptForMs / 3 : Number.POSITIVE_INFINITY, sentAt);
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

const NOT_RENEWED = 'its time ran out, and lease.renew() was not called before (renewal is manual).';

export function isLossReason(value: unknown): value is LossReason {
  return typeof value === 'string' && Object.hasOwn(EXPLANATIONS, value);
}
