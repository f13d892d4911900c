import type { Call, Conflict, Grant } from '@locks/core/backend';
import type { ICompare, IRequestOp } from 'etcd3';
import type { Acquisition } from './acquisition.ts';
import type { AttemptOutcome, Blocked } from './attempt-outcome.ts';
import { absent, exclusiveHold, nothingIn, read, remove, unchangedSince, when } from './conditions.ts';
import { retryWhileChanging } from './etcd-errors.ts';
import { SendCount } from './etcd-port.ts';
import type { HoldWrites } from './hold-writes.ts';
import type { EtcdLease } from './lease-pool.ts';
import { conflictWith, QueueTurns } from './queue-turns.ts';
import { endedBySteal, isAheadOfQueue, markSteal, putHold } from './txn-branches.ts';
import { type ResourceView, withOthers } from './txn-responses.ts';

/** The most entries that one transaction steals: a server accepts 128 operations in one transaction. */
const MOST_STOLEN = 100;

/** The result of a transaction that writes all holds or none. */
interface Written {
  /** The grants, if all holds were written. */
  readonly grants: readonly Grant[] | undefined;
  /** The resource of each acquisition as it is afterwards. */
  readonly views: readonly ResourceView[];
}

/** The ways to hold that never queue: one transaction each, whose conditions do not trust earlier reads. */
export class DirectGrants {
  readonly #writes: HoldWrites;

  constructor(writes: HoldWrites) {
    this.#writes = writes;
  }

  /** Grants all of the acquisitions, or none of them and leaves nothing behind. */
  async takeAll(
    acquisitions: readonly Acquisition[],
    call: Call,
  ): Promise<readonly Grant[] | Blocked | Conflict> {
    if (acquisitions.length === 0) return [];
    let conditions = acquisitions.map(({ range }) => nothingIn(range));
    const message = 'The lock changed hands again and again while it was tried.';
    return await retryWhileChanging<readonly Grant[] | Blocked | Conflict>(message, async () => {
      const written = await this.#write(acquisitions, conditions, [], call);
      if (written === undefined) return undefined;
      if (written.grants !== undefined) return written.grants;
      for (const [index, { request }] of acquisitions.entries()) {
        const { own, others, revision } = written.views[index] as ResourceView;
        if (own?.held === true) continue;
        const conflict = conflictWith(others, request.mode);
        if (conflict !== undefined) return conflict;
        const turn = new QueueTurns(others).ofNewcomer(request.mode);
        if (turn.status === 'blocked')
          return { status: 'blocked', nearest: turn.nearest, blockerUnread: false, revision };
      }
      conditions = acquisitions.map(({ range }, index) => {
        const { own, revision } = written.views[index] as ResourceView;
        // A hold of an earlier sending, which ends with its lease: others may have queued behind it (docs/spec.md §7.1).
        return own?.held === true ? nothingIn(range) : unchangedSince(range, revision);
      });
      return undefined;
    });
  }

  /** Ends every hold and grants this acquisition instead, ahead of the queue. */
  async steal(acquisition: Acquisition, call: Call): Promise<AttemptOutcome> {
    const { range, key, request } = acquisition;
    let conditions: ICompare[] = [nothingIn(range)];
    let ends: IRequestOp[] = [];
    const message = 'The lock changed hands again and again while it was stolen.';
    return await retryWhileChanging<AttemptOutcome>(message, async () => {
      const written = await this.#write([acquisition], conditions, ends, call);
      if (written === undefined) return undefined;
      const [grant] = written.grants ?? [];
      if (grant !== undefined) return { status: 'granted', grant };
      const { own, others, revision } = written.views[0] as ResourceView;
      if (own?.held === true) {
        // The lease of an earlier sending has ended: what else is there was not read, and must be before it can be ended.
        [conditions, ends] = [[nothingIn(range)], []];
        return undefined;
      }
      const conflict = conflictWith(
        others.filter(({ held }) => !held),
        request.mode,
      );
      if (conflict !== undefined) return conflict;
      ends = others.flatMap((entry) => endedBySteal(entry, request.mode));
      if (ends.length > MOST_STOLEN) {
        throw new Error(
          `${others.length} acquisitions hold or wait: a steal can end at most ${MOST_STOLEN} in one step. Use forceRelease.`,
        );
      }
      conditions = [unchangedSince(range, revision), absent(key)];
      return undefined;
    });
  }

  /** Ends the exclusive hold of one acquisition and grants it to this one, ahead of the queue. */
  async adopt(acquisition: Acquisition, call: Call): Promise<AttemptOutcome> {
    const { key, adoptedKey } = acquisition;
    if (adoptedKey === undefined) throw new Error('The request adopts nothing.');
    const conditions = [absent(key), ...exclusiveHold(adoptedKey)];
    const message = 'The lease of the hold ended again and again while it was adopted.';
    return await retryWhileChanging<AttemptOutcome>(message, async () => {
      const written = await this.#write([acquisition], conditions, [remove(adoptedKey)], call);
      if (written === undefined) return undefined;
      const [grant] = written.grants ?? [];
      if (grant !== undefined) return { status: 'granted', grant };
      const { revision } = written.views[0] as ResourceView;
      return { status: 'blocked', nearest: undefined, blockerUnread: false, revision };
    });
  }

  /**
   * Writes the holds of all acquisitions in one transaction, or none of them.
   *
   * @param ends - the operations that end other holds in the same transaction
   * @returns `undefined` if a lease was gone and nothing was written
   */
  async #write(
    acquisitions: readonly Acquisition[],
    conditions: ICompare[],
    ends: readonly IRequestOp[],
    call: Call,
  ): Promise<Written | undefined> {
    const leases = await Promise.all(acquisitions.map((each) => this.#writes.lease(each, call)));
    const puts = acquisitions.flatMap((each, index) => {
      const lease = leases[index] as EtcdLease;
      const put = putHold(each, lease, 0);
      return isAheadOfQueue(each.request) ? [markSteal(each.stealMark, lease), put] : [put];
    });
    const operations = [
      when(
        conditions,
        [...ends, ...puts],
        acquisitions.map(({ range }) => read(range)),
      ),
      ...acquisitions.map(({ key }) => read({ key })),
    ];
    const sent = await this.#writes.send(acquisitions, leases, operations, call, new SendCount());
    if (sent === undefined) return undefined;
    const results = await this.#writes.readResults(acquisitions, sent, call, 1);
    const views = results.map((each, index) => withOthers(each, sent.response, 0, index));
    const grants = views.map(({ grant }) => grant).filter((grant) => grant !== undefined);
    return { grants: grants.length === acquisitions.length ? grants : undefined, views };
  }
}
