import type { AcquireRequest, Grant } from '@locks/core/backend';
import { turnToken } from './cohort-tokens.ts';

/** One acquisition that holds a cohort's lease, or held it. */
export interface Turn {
  readonly lease: CohortLease;
  /** The grant that core gets. */
  readonly grant: Grant;
}

/** A symbol, so that a copy for another thread leaves the turn out. */
const turnKey = Symbol('turn');

/** A request as part of a grant: copies of it, such as core makes after a downgrade, keep its turn. */
interface RequestWithTurn extends AcquireRequest {
  readonly [turnKey]?: Turn;
}

/** The turn that the request of a grant belongs to. */
export function turnIn(request: AcquireRequest): Turn | undefined {
  const turn = (request as RequestWithTurn)[turnKey];
  return turn?.grant.request.acquisitionId === request.acquisitionId ? turn : undefined;
}

/** One lease at the store, with the acquisition of this process that has its turn. */
export class CohortLease {
  /** The store's grant, with the request that the store knows. */
  readonly grant: Grant;
  readonly grantedAt: number;
  /** The waiters of this process up to this ticket waited when the store granted. */
  readonly lastTicket: number;
  /** The turn of the acquisition that holds; `undefined` before the first one. */
  current: Turn | undefined;
  turnsTaken = 0;
  #countedFrom: number;
  #validForMs: number;

  constructor(grant: Grant, grantedAt: number, lastTicket: number) {
    this.grant = grant;
    this.grantedAt = grantedAt;
    this.lastTicket = lastTicket;
    this.#countedFrom = grant.countedFrom;
    this.#validForMs = grant.validForMs ?? grant.request.ttlMs;
  }

  /** Begins the turn of a request: from here on it alone holds, with a token of its own. */
  begin(request: AcquireRequest): Turn {
    const fencingToken = turnToken(this.grant.fencingToken, this.turnsTaken);
    this.turnsTaken += 1;
    const own: { -readonly [K in keyof RequestWithTurn]: RequestWithTurn[K] } = { ...request };
    const grant: Grant = {
      ...this.grant,
      atStore: this.grant,
      request: own,
      ...(fencingToken !== undefined && { fencingToken }),
      countedFrom: this.#countedFrom,
      // The leader, which waited at the store for all, may have asked for a longer ttl (docs/spec.md §1.2).
      validForMs: Math.min(this.#validForMs, request.ttlMs),
    };
    this.current = own[turnKey] = { lease: this, grant };
    return this.current;
  }

  /** The time until which the store keeps the lease, as far as is known. */
  get endsAt(): number {
    return this.grant.session?.validUntil() ?? this.#countedFrom + this.#validForMs;
  }

  /**
   * Whether a waiter may have the lease without a call to the store. At most a third of the lease is over: it could not have
   * been renewed later, and its end is far beyond the margin (docs/spec.md §18.4).
   */
  suits({ ttlMs }: AcquireRequest, now: number): boolean {
    const { lost, session, request } = this.grant;
    if (lost?.aborted === true || ttlMs !== request.ttlMs) return false;
    if (session !== undefined) return now < this.endsAt;
    return now < this.#countedFrom + this.#validForMs / 3;
  }

  /** Moves the end of the lease after a confirmed renewal. `sentAt` is a time from before the renewal was sent. */
  renewed(sentAt: number, validForMs: number): void {
    // A stale reply to an earlier renewal moves nothing.
    if (sentAt < this.#countedFrom) return;
    this.#countedFrom = sentAt;
    this.#validForMs = validForMs;
  }
}
