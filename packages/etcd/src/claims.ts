import type { Call, Grant } from '@locks/core/backend';
import type { ICompare } from 'etcd3';
import type { Acquisition } from './acquisition.ts';
import type { AttemptOutcome, Blocked, Free, NotQueued, QueueStatus } from './attempt-outcome.ts';
import { modifiedAt, read, when } from './conditions.ts';
import { retryWhileChanging } from './etcd-errors.ts';
import { type EtcdPort, SendCount } from './etcd-port.ts';
import type { HoldResult, HoldWrites } from './hold-writes.ts';
import type { LeasePool } from './lease-pool.ts';
import { type EtcdTurn, positionOf, type QueueTurns, turnOf } from './queue-turns.ts';
import { SharedReads } from './shared-reads.ts';
import { type ClaimBasis, claimConditions, holdsAllow, putHold } from './txn-branches.ts';
import { withOthers } from './txn-responses.ts';
import type { EtcdWaiterSessions } from './waiter-sessions.ts';

type BlockedTurn = Extract<EtcdTurn, { status: 'blocked' }>;

/**
 * What becomes of queued acquisitions: their entries turn into holds, under conditions that do not trust what was read, or else the
 * position is recorded, and the lease that was reserved for the grant is returned.
 */
export class Claims {
  readonly #leases: LeasePool;
  readonly #sessions: EtcdWaiterSessions;
  readonly #writes: HoldWrites;
  readonly #reads: SharedReads;

  constructor(port: EtcdPort, leases: LeasePool, sessions: EtcdWaiterSessions, writes: HoldWrites) {
    this.#leases = leases;
    this.#sessions = sessions;
    this.#writes = writes;
    this.#reads = new SharedReads(port);
  }

  /** Grants a queued acquisition if its turn has come. */
  async claim(acquisition: Acquisition, basis: ClaimBasis, call: Call): Promise<AttemptOutcome> {
    let known = basis;
    const message = 'The queue of the lock changed again and again.';
    return await retryWhileChanging<AttemptOutcome>(message, async () => {
      if (acquisition.position === undefined) return { status: 'not-queued' };
      const conditions = claimConditions(acquisition, known);
      // Only the first claim relies on the end of the hold ahead: it fails if another acquisition has stolen the resource since.
      if (known.type === 'next') known = { type: 'unread' };
      if (conditions === undefined) {
        const status = await this.#readStatus(acquisition, call);
        if (status.status !== 'free') return status;
        known = { type: 'free', asOf: status.asOf };
        return undefined;
      }
      const answer = await this.#send(acquisition, conditions, call);
      if (answer === undefined) return undefined;
      const { own, others, revision, grant } = answer;
      if (own === undefined) return this.#notQueued(acquisition);
      if (own.held) return grant && { status: 'granted', grant };
      this.#sessions.queued(acquisition, own);
      const turn = turnOf(others, own.mode, positionOf(own));
      if (turn.status === 'blocked') return this.blocked(acquisition, turn, revision, call);
      known = { type: 'free', asOf: own.modRevision };
      return undefined;
    });
  }

  /**
   * Grants queued readers, or queued permits, of one resource whose turn has come, in one transaction and in queue order. An
   * acquisition that is not among the grants must claim by itself.
   *
   * @param turns - the turn of each as a read has found it
   */
  async claimTogether(
    acquisitions: readonly Acquisition[],
    calls: ReadonlyMap<Acquisition, Call>,
    turns: ReadonlyMap<Acquisition, Free>,
  ): Promise<ReadonlyMap<Acquisition, Grant>> {
    const grants = new Map<Acquisition, Grant>();
    const leases = await Promise.allSettled(
      acquisitions.map((each) => this.#writes.lease(each, calls.get(each) as Call)),
    );
    const ready = acquisitions.flatMap((acquisition, index) => {
      const { position, ended } = acquisition;
      const lease = leases[index];
      if (lease?.status !== 'fulfilled' || position === undefined || ended) return [];
      const call = calls.get(acquisition) as Call;
      const asOf = turns.get(acquisition)?.asOf ?? position.modRevision;
      return [{ acquisition, asOf, lease: lease.value, call, sentAt: call.now() }];
    });
    const [first] = ready;
    if (first === undefined) return grants;
    const puts = ready.map(({ acquisition, asOf, lease }, rank) =>
      when([modifiedAt(acquisition.key, asOf)], [putHold(acquisition, lease, rank)]),
    );
    const { range, request } = first.acquisition;
    const operations = [
      // The condition on the range is written once for all acquisitions.
      when(holdsAllow(range, request.mode), puts),
      ...ready.map(({ acquisition: { key } }) => read({ key })),
    ];
    const sent = await this.#writes.send(
      ready.map(({ acquisition }) => acquisition),
      ready.map(({ lease }) => lease),
      operations,
      first.call,
      new SendCount(),
    );
    if (sent === undefined) return grants;
    for (const [index, { acquisition, call, sentAt }] of ready.entries()) {
      // An acquisition that was abandoned meanwhile, or whose lease is not known to last, does not affect the others.
      const results = this.#writes.readResults([acquisition], { ...sent, sentAt }, call, 1 + index);
      const [answer] = await results.catch(() => []);
      if (answer?.grant !== undefined) grants.set(acquisition, answer.grant);
    }
    return grants;
  }

  /** Returns `undefined` if the lease was gone and nothing was written. */
  async #send(acquisition: Acquisition, conditions: ICompare[], call: Call): Promise<HoldResult | undefined> {
    const { key, range } = acquisition;
    const lease = await this.#writes.lease(acquisition, call);
    // The other entries are read only if the claim fails: a hand-off in a long queue must not read all of it.
    const operations = [when(conditions, [putHold(acquisition, lease, 0)], [read(range)]), read({ key })];
    const sent = await this.#writes.send([acquisition], [lease], operations, call, new SendCount());
    if (sent === undefined) return undefined;
    const [answer] = await this.#writes.readResults([acquisition], sent, call, 1);
    return answer && withOthers(answer, sent.response, 0, 0);
  }

  /** Reads the status of a queued acquisition from the store. */
  async #readStatus(acquisition: Acquisition, call: Call): Promise<QueueStatus> {
    const { turns, revision } = await this.#reads.of(acquisition, call);
    acquisition.assertWanted();
    const status = this.statusOf(acquisition, turns, revision, call);
    if (status.status === 'blocked') this.#returnLease(acquisition);
    return status;
  }

  /** The status by an answer that may be older than a grant whose keep-alive is under way: the reserved lease stays reserved. */
  statusOf(acquisition: Acquisition, turns: QueueTurns, revision: number, call: Call): QueueStatus {
    const own = turns.entryOf(acquisition.request.acquisitionId);
    if (own === undefined) return this.#notQueued(acquisition);
    // An unanswered claim had succeeded: the next claim finds the hold and makes its grant.
    if (own.held) return { status: 'free', asOf: undefined };
    this.#sessions.queued(acquisition, own);
    const turn = turns.of(own);
    return turn.status === 'free'
      ? { status: 'free', asOf: own.modRevision }
      : this.#behind(turn, acquisition, revision, call);
  }

  /** The status by the answer to the acquisition's own attempt. */
  blocked(acquisition: Acquisition, turn: BlockedTurn, revision: number, call: Call): Blocked {
    this.#returnLease(acquisition);
    return this.#behind(turn, acquisition, revision, call);
  }

  #notQueued(acquisition: Acquisition): NotQueued {
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
