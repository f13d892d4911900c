import type { Call } from '@locks/core/backend';
import type { Acquisition } from './acquisition.ts';
import type { Blocked, NotQueued, QueueStatus } from './attempt-outcome.ts';
import type { LeasePool } from './lease-pool.ts';
import type { EtcdTurn, QueueTurns } from './queue-turns.ts';
import type { SharedReads } from './shared-reads.ts';
import type { EtcdWaiterSessions } from './waiter-sessions.ts';

type BlockedTurn = Extract<EtcdTurn, { status: 'blocked' }>;

/**
 * The statuses of queued acquisitions, which all ways into the queue end in: each records where the acquisition stands, and
 * what becomes of the lease that is reserved for its grant.
 */
export class QueueStatuses {
  readonly #leases: LeasePool;
  readonly #sessions: EtcdWaiterSessions;
  readonly #reads: SharedReads;

  constructor(leases: LeasePool, sessions: EtcdWaiterSessions, reads: SharedReads) {
    this.#leases = leases;
    this.#sessions = sessions;
    this.#reads = reads;
  }

  /** Reads the status of a queued acquisition from the store. */
  async read(acquisition: Acquisition, call: Call): Promise<QueueStatus> {
    const { turns, revision } = await this.#reads.of(acquisition, call);
    acquisition.assertWanted();
    const status = this.of(acquisition, turns, revision, call);
    if (status.status === 'blocked') this.#returnLease(acquisition);
    return status;
  }

  /** The status by an answer that may be older than a grant whose keep-alive is under way: the reserved lease stays reserved. */
  of(acquisition: Acquisition, turns: QueueTurns, revision: number, call: Call): QueueStatus {
    const own = turns.entryOf(acquisition.request.acquisitionId);
    if (own === undefined) return this.notQueued(acquisition);
    // An unanswered claim had succeeded: the next claim finds the hold and makes its grant.
    if (own.held) return { status: 'free' };
    this.#sessions.queued(acquisition, own);
    const turn = turns.of(own);
    return turn.status === 'free' ? turn : this.#behind(turn, acquisition, revision, call);
  }

  /** The status by the answer to the acquisition's own attempt. */
  blocked(acquisition: Acquisition, turn: BlockedTurn, revision: number, call: Call): Blocked {
    this.#returnLease(acquisition);
    return this.#behind(turn, acquisition, revision, call);
  }

  notQueued(acquisition: Acquisition): NotQueued {
    this.#sessions.dequeued(acquisition);
    acquisition.reportEnd({ type: 'unknown' });
    return { status: 'not-queued' };
  }

  #behind(
    { nearest, byHolders }: BlockedTurn,
    { lease, request }: Acquisition,
    revision: number,
    call: Call,
  ): Blocked {
    if (lease === undefined && byHolders) this.#leases.prepare(request.ttlMs, call);
    return { status: 'blocked', nearest, blockerUnread: false, revision };
  }

  /** A waiter may wait longer than a lease lasts: the next acquisition uses the lease. */
  #returnLease(acquisition: Acquisition): void {
    if (acquisition.lease === undefined || acquisition.hasUnansweredWrite) return;
    this.#leases.release(acquisition.lease);
    acquisition.lease = undefined;
  }
}
