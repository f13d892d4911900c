import type { Call, Grant } from '@locks/core/backend';
import type { ICompare } from 'etcd3';
import type { Acquisition } from './acquisition.ts';
import type { AttemptOutcome } from './attempt-outcome.ts';
import { modifiedAt, read, when } from './conditions.ts';
import { SendCount } from './etcd-port.ts';
import type { HoldResult, HoldWrites } from './hold-writes.ts';
import { positionOf, turnOf } from './queue-turns.ts';
import type { QueueStatuses } from './queue-statuses.ts';
import { retryWhileChanging } from './retry-while-changing.ts';
import { type ClaimBasis, claimConditions, holdsAllow, putHold } from './txn-branches.ts';
import { withOthers } from './txn-responses.ts';
import type { EtcdWaiterSessions } from './waiter-sessions.ts';

/** Turns entries of the queue into holds, under conditions that do not trust what was read. */
export class Claims {
  readonly #sessions: EtcdWaiterSessions;
  readonly #writes: HoldWrites;
  readonly #statuses: QueueStatuses;

  constructor(sessions: EtcdWaiterSessions, writes: HoldWrites, statuses: QueueStatuses) {
    this.#sessions = sessions;
    this.#writes = writes;
    this.#statuses = statuses;
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
        const status = await this.#statuses.read(acquisition, call);
        if (status.status !== 'free') return status;
        known = { type: 'free' };
        return undefined;
      }
      const answer = await this.#send(acquisition, conditions, call);
      if (answer === undefined) return undefined;
      const { own, others, revision, grant } = answer;
      if (own === undefined) return this.#statuses.notQueued(acquisition);
      if (own.held) return grant && { status: 'granted', grant };
      this.#sessions.queued(acquisition, own);
      const turn = turnOf(others, own.mode, positionOf(own));
      if (turn.status === 'blocked') return this.#statuses.blocked(acquisition, turn, revision, call);
      known = { type: 'free' };
      return undefined;
    });
  }

  /**
   * Grants queued readers, or queued permits, of one resource whose turn has come, in one transaction and in queue order. An
   * acquisition that is not among the grants must claim by itself.
   */
  async claimTogether(
    acquisitions: readonly Acquisition[],
    calls: ReadonlyMap<Acquisition, Call>,
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
      return [{ acquisition, position, lease: lease.value, call, sentAt: call.now() }];
    });
    const [first] = ready;
    if (first === undefined) return grants;
    const puts = ready.map(({ acquisition, position, lease }, rank) =>
      when([modifiedAt(acquisition.key, position.modRevision)], [putHold(acquisition, lease, rank)]),
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
}
