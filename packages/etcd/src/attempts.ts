import type { Call, Conflict, Grant } from '@locks/core/backend';
import type { ICompare, IRequestOp } from 'etcd3';
import type { Acquisition } from './acquisition.ts';
import type { Acquisitions } from './acquisitions.ts';
import { type ResourceView, keysAt, withOthers } from './txn-responses.ts';
import {
  absent,
  exclusiveHold,
  noExclusiveHold,
  nothingIn,
  read,
  remove,
  unchangedSince,
  when,
  modifiedAt,
} from './conditions.ts';
import type { EtcdEntry } from './etcd-entry.ts';
import type { EtcdPort } from './etcd-port.ts';
import type { HoldResult, HoldWrites } from './hold-writes.ts';
import type { EtcdLease, LeasePool } from './lease-pool.ts';
import { EnqueueBatches } from './enqueue-batches.ts';
import { ChangedMeanwhileError } from './etcd-errors.ts';
import { conflictWith, positionOf, type EtcdTurn, type QueueTurns, turnOf } from './queue-turns.ts';
import { SharedReads } from './shared-reads.ts';
import { type EtcdWaiterSession, readMarker } from './waiter-session.ts';
import type { EtcdWaiterSessions } from './waiter-sessions.ts';
import {
  claimConditions,
  firstMatching,
  endedBySteal,
  markSteal,
  putHold,
  holdBranches,
  queueBranches,
} from './txn-branches.ts';

/** The result of an attempt; `blocked` says what a waiter must watch. */
export type AttemptOutcome =
  | { readonly status: 'granted'; readonly grant: Grant }
  /** `blockerUnread`: the blocker is ahead of the part of the queue that was read, and `nearest` is not the blocker. */
  | {
      readonly status: 'blocked';
      readonly nearest: EtcdEntry | undefined;
      readonly revision: number;
      readonly blockerUnread?: true;
    }
  /** The acquisition was in the queue and has left it. */
  | { readonly status: 'not-queued' }
  | Conflict;

type QueueStatus =
  | { readonly status: 'free' }
  | Extract<AttemptOutcome, { status: 'blocked' | 'not-queued' }>;

/** The number of tries of a write that depends on an earlier read, before the whole attempt fails. */
const TRIES = 20;
/** The most entries that one transaction steals: a server accepts 128 operations in one transaction. */
const MOST_STOLEN = 100;

/**
 * Every way to hold a resource or to queue for it: one transaction each, whose conditions do not trust earlier reads. They stand in one
 * file since each ends alike: a grant, or a lease that is returned or stays reserved for a request in flight.
 */
export class Attempts {
  readonly #leases: LeasePool;
  readonly #sessions: EtcdWaiterSessions;
  readonly #acquisitions: Acquisitions;
  readonly #writes: HoldWrites;
  readonly #batches: EnqueueBatches;
  readonly #reads: SharedReads;

  constructor(
    port: EtcdPort,
    leases: LeasePool,
    sessions: EtcdWaiterSessions,
    acquisitions: Acquisitions,
    writes: HoldWrites,
  ) {
    this.#leases = leases;
    this.#sessions = sessions;
    this.#acquisitions = acquisitions;
    this.#writes = writes;
    this.#batches = new EnqueueBatches(sessions, writes);
    this.#reads = new SharedReads(port);
  }

  /** Grants the lock or puts the acquisition into the queue. */
  async enqueue(acquisition: Acquisition, call: Call): Promise<AttemptOutcome> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      if (acquisition.position !== undefined) {
        const outcome = await this.claim(acquisition, call);
        if (outcome.status !== 'not-queued') return outcome;
        continue;
      }
      // No lease is reserved if other acquisitions of this process hold or wait: the resource is most likely in use.
      const lease = this.#acquisitions.hasOthers(acquisition)
        ? acquisition.lease
        : await this.#writes.lease(acquisition, call);
      const session = lease === undefined ? await this.#sessions.ensure(call) : this.#sessions.use();
      const answer = await this.#enter(acquisition, lease, session, call);
      if (answer === undefined) continue;
      const { own, others } = answer;
      if (own !== undefined) {
        if (own.held) {
          if (answer.grant !== undefined) return { status: 'granted', grant: answer.grant };
          continue;
        }
        this.#sessions.queued(acquisition, own);
        if (session !== undefined) acquisition.session = session;
        const turn = turnOf(others, own.mode, positionOf(own));
        // A blocker that was read at the end of the queue blocks whatever is ahead of it.
        if (turn.status === 'blocked') return this.#blocked(acquisition, turn, answer.revision, call);
        const [nearest] = answer.partial ? others.slice(-1) : [];
        // One shared read finds the writer that readers behind other readers wait for.
        if (nearest !== undefined)
          return { status: 'blocked', nearest, revision: answer.revision, blockerUnread: true };
        continue;
      }
      const conflict = conflictWith(others, acquisition.request.mode);
      if (conflict !== undefined) return { status: 'conflict', with: conflict };
      // A foreign key never ends by itself: the queue cannot be entered while it is there.
      const foreign = others.find((entry) => entry.foreign);
      if (foreign !== undefined) {
        throw new Error(
          `the key ${foreign.key.toString('utf8')} does not belong to a lock, but is among the keys of this lock: delete it, or use another prefix`,
        );
      }
      await this.#sessions.ensure(call);
    }
    throw new ChangedMeanwhileError('The queue of the lock changed again and again while it was entered.');
  }

  /** Grants all of the acquisitions, or none of them and leaves nothing behind. */
  async grab(
    acquisitions: readonly Acquisition[],
    call: Call,
  ): Promise<readonly Grant[] | Extract<AttemptOutcome, { status: 'blocked' | 'conflict' }>> {
    const [first] = acquisitions;
    if (first === undefined) return [];
    const leases = await Promise.all(acquisitions.map((each) => this.#writes.lease(each, call)));
    let conditions = acquisitions.flatMap((each) => nothingIn(each.range));
    for (let tries = 0; tries < TRIES; tries += 1) {
      const sent = await this.#write(acquisitions, leases, conditions, call);
      if (sent === undefined) {
        leases.splice(
          0,
          leases.length,
          ...(await Promise.all(acquisitions.map((each) => this.#writes.lease(each, call)))),
        );
        continue;
      }
      if (sent.grants !== undefined) return sent.grants;
      for (const [index, { request }] of acquisitions.entries()) {
        const { own, others, revision } = sent.answers[index] as ResourceView;
        if (own?.held === true) continue;
        const conflict = conflictWith(others, request.mode);
        if (conflict !== undefined) return { status: 'conflict', with: conflict };
        const turn = turnOf(others, request.mode);
        if (turn.status === 'blocked') return { status: 'blocked', nearest: turn.nearest, revision };
      }
      conditions = acquisitions.flatMap(({ range }, index) =>
        unchangedSince(range, (sent.answers[index] as ResourceView).revision),
      );
    }
    throw new ChangedMeanwhileError('The lock changed hands again and again while it was tried.');
  }

  /** Grants a queued acquisition if its turn has come. */
  async claim(
    acquisition: Acquisition,
    call: Call,
    known?: EtcdTurn,
    after?: Buffer,
  ): Promise<AttemptOutcome> {
    let turn = known;
    let behind = after;
    for (let tries = 0; tries < TRIES; tries += 1) {
      const { position } = acquisition;
      if (position === undefined) return { status: 'not-queued' };
      const conditions = claimConditions(acquisition, turn, behind);
      behind = undefined;
      if (conditions === undefined) {
        const status = await this.readStatus(acquisition, call);
        if (status.status !== 'free') return status;
        turn = { status: 'free' };
        continue;
      }
      const lease = await this.#writes.lease(acquisition, call);
      const [answer] = (await this.#claimWith(acquisition, lease, conditions, call)) ?? [];
      if (answer === undefined) continue;
      const { own, others, revision, grant } = answer;
      if (own === undefined) return this.#notQueued(acquisition);
      if (own.held) {
        if (grant !== undefined) return { status: 'granted', grant };
        continue;
      }
      this.#sessions.queued(acquisition, own);
      turn = turnOf(others, own.mode, positionOf(own));
      if (turn.status === 'blocked') return this.#blocked(acquisition, turn, revision, call);
    }
    throw new ChangedMeanwhileError('The queue of the lock changed again and again.');
  }

  /** Reads the status of a queued acquisition from the store. */
  async readStatus(acquisition: Acquisition, call: Call): Promise<QueueStatus> {
    const { turns, revision } = await this.#reads.of(acquisition, call);
    acquisition.assertWanted();
    const status = this.queueStatus(acquisition, turns, revision, call);
    if (status.status === 'blocked') this.#returnLease(acquisition);
    return status;
  }

  /** The status by an answer that may be older than a grant whose keep-alive is under way: the reserved lease stays reserved. */
  queueStatus(acquisition: Acquisition, turns: QueueTurns, revision: number, call: Call): QueueStatus {
    const own = turns.entryOf(acquisition.request.acquisitionId);
    if (own === undefined) return this.#notQueued(acquisition);
    // An unanswered claim had succeeded: the next claim finds the hold and makes its grant.
    if (own.held) return { status: 'free' };
    this.#sessions.queued(acquisition, own);
    const turn = turns.of(own);
    return turn.status === 'free' ? turn : this.#blockedBy(turn, acquisition, revision, call);
  }

  /** Ends every hold and grants this acquisition instead, ahead of the queue. */
  async steal(acquisition: Acquisition, call: Call): Promise<AttemptOutcome> {
    const { range, key, request } = acquisition;
    let lease = await this.#writes.lease(acquisition, call);
    let conditions: ICompare[] = [nothingIn(range)];
    let ends: IRequestOp[] = [];
    for (let tries = 0; tries < TRIES; tries += 1) {
      const also = [...ends, markSteal(acquisition, lease)];
      const sent = await this.#write([acquisition], [lease], conditions, call, also);
      if (sent === undefined) {
        lease = await this.#writes.lease(acquisition, call);
        continue;
      }
      const [grant] = sent.grants ?? [];
      if (grant !== undefined) return { status: 'granted', grant };
      const { others, revision } = sent.answers[0] as ResourceView;
      const conflict = conflictWith(
        others.filter(({ held }) => !held),
        request.mode,
      );
      if (conflict !== undefined) return { status: 'conflict', with: conflict };
      ends = others.flatMap((entry) => endedBySteal(entry, request.mode));
      if (ends.length > MOST_STOLEN) {
        throw new Error(
          `${others.length} acquisitions hold or wait: a steal can end at most ${MOST_STOLEN} in one step. Use forceRelease.`,
        );
      }
      conditions = [unchangedSince(range, revision), absent(key)];
    }
    throw new ChangedMeanwhileError('The lock changed hands again and again while it was stolen.');
  }

  /** Ends the exclusive hold of one acquisition and grants it to this one, ahead of the queue. */
  async adopt(acquisition: Acquisition, call: Call): Promise<AttemptOutcome> {
    const { key, adoptedKey } = acquisition;
    if (adoptedKey === undefined) throw new Error('The request adopts nothing.');
    const conditions = [absent(key), ...exclusiveHold(adoptedKey)];
    for (let tries = 0; tries < TRIES; tries += 1) {
      const lease = await this.#writes.lease(acquisition, call);
      const also = [remove(adoptedKey), markSteal(acquisition, lease)];
      const sent = await this.#write([acquisition], [lease], conditions, call, also);
      if (sent === undefined) continue;
      const [grant] = sent.grants ?? [];
      if (grant !== undefined) return { status: 'granted', grant };
      return { status: 'blocked', nearest: undefined, revision: (sent.answers[0] as ResourceView).revision };
    }
    throw new ChangedMeanwhileError('The lease of the hold ended again and again while it was adopted.');
  }

  async #enter(
    acquisition: Acquisition,
    lease: EtcdLease | undefined,
    session: EtcdWaiterSession | undefined,
    call: Call,
  ): Promise<HoldResult | undefined> {
    // An acquisition that may be queued already would make the whole batch fail.
    if (lease === undefined && session !== undefined && !acquisition.hasUnansweredWrite) {
      const answer = await this.#batches.enter(acquisition, session, call);
      acquisition.assertWanted();
      // Another client was granted the same id: the code below asks how long its lease lasts.
      if (answer?.own?.held !== true) return answer;
    }
    const others = read(acquisition.range);
    const queues = session === undefined ? [] : queueBranches([acquisition], session, lease === undefined);
    const branches = [
      ...(lease === undefined ? [] : holdBranches(acquisition, lease)),
      ...queues.map(({ conditions, writes }) => ({ conditions, writes: [...writes, others] })),
    ];
    if (session !== undefined) acquisition.session = session;
    const operations = [
      // A free lock is granted without a read of its range: the server would search all its earlier keys once more.
      firstMatching(branches, [others]),
      read({ key: acquisition.key }),
      ...(session === undefined ? [] : [readMarker(session)]),
    ];
    const sent = await this.#writes.send([acquisition], lease === undefined ? [] : [lease], operations, call);
    if (sent === undefined) return undefined;
    if (session !== undefined) this.#sessions.seen(session, keysAt(sent.response, 2)[0]);
    const [answer] = await this.#writes.readResults([acquisition], sent, call);
    return answer && withOthers(answer, sent.response, 0);
  }

  async #claimWith(
    acquisition: Acquisition,
    lease: EtcdLease,
    conditions: ICompare[],
    call: Call,
  ): Promise<HoldResult[] | undefined> {
    const { key, range } = acquisition;
    // The other entries are read only if the claim fails: a hand-off in a long queue must not read all of it.
    const operations = [when(conditions, [putHold(acquisition, lease)], [read(range)]), read({ key })];
    const sent = await this.#writes.send([acquisition], [lease], operations, call);
    if (sent === undefined) return undefined;
    const [answer] = await this.#writes.readResults([acquisition], sent, call);
    return answer && [withOthers(answer, sent.response, 0)];
  }

  /** Writes all of the given holds in one transaction, or none. */
  async #write(
    acquisitions: readonly Acquisition[],
    leases: readonly EtcdLease[],
    conditions: ICompare[],
    call: Call,
    also: readonly IRequestOp[] = [],
  ): Promise<{ grants: readonly Grant[] | undefined; answers: readonly ResourceView[] } | undefined> {
    const puts = acquisitions.map((each, index) => putHold(each, leases[index] as EtcdLease));
    const reads = acquisitions.map(({ range }) => read(range));
    const operations = [
      when(conditions, [...also, ...puts], reads),
      ...acquisitions.map(({ key }) => read({ key })),
    ];
    const sent = await this.#writes.send(acquisitions, leases, operations, call);
    if (sent === undefined) return undefined;
    const results = await this.#writes.readResults(acquisitions, sent, call);
    const answers = results.map((each, index) => withOthers(each, sent.response, 0, index));
    const grants = answers.map(({ grant }) => grant).filter((grant) => grant !== undefined);
    return { grants: grants.length === acquisitions.length ? grants : undefined, answers };
  }

  /**
   * Grants queued readers, or queued permits, of one resource whose turn has come, in one transaction and in queue order.
   * The outcome `again` marks an acquisition that was not granted and must claim by itself.
   */
  async claimTogether(
    acquisitions: readonly Acquisition[],
    calls: ReadonlyMap<Acquisition, Call>,
  ): Promise<ReadonlyMap<Acquisition, AttemptOutcome | { readonly status: 'again' }>> {
    const outcomes = new Map<Acquisition, AttemptOutcome | { readonly status: 'again' }>();
    for (const each of acquisitions) outcomes.set(each, { status: 'again' });
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
    if (first === undefined) return outcomes;
    const puts = ready.map(({ acquisition, position, lease }, rank) =>
      when([modifiedAt(acquisition.key, position.modRevision)], [putHold(acquisition, lease, rank)]),
    );
    const { range, request } = first.acquisition;
    const operations = [
      // The same conditions as in `claimConditions`, with the condition on the range written once for all acquisitions.
      when(request.mode.kind === 'shared' ? [noExclusiveHold(range)] : [], puts),
      ...ready.map(({ acquisition: { key } }) => read({ key })),
    ];
    const sent = await this.#writes.send(
      ready.map(({ acquisition }) => acquisition),
      ready.map(({ lease }) => lease),
      operations,
      first.call,
    );
    if (sent === undefined) return outcomes;
    for (const [index, { acquisition, call, sentAt }] of ready.entries()) {
      // An acquisition that was abandoned meanwhile, or whose lease is not known to last, does not affect the others.
      const results = this.#writes.readResults([acquisition], { ...sent, sentAt }, call, 1 + index);
      const [answer] = await results.catch(() => []);
      if (answer?.grant !== undefined) outcomes.set(acquisition, { status: 'granted', grant: answer.grant });
    }
    return outcomes;
  }

  #notQueued(acquisition: Acquisition): { readonly status: 'not-queued' } {
    this.#sessions.dequeued(acquisition);
    acquisition.reportEnd();
    return { status: 'not-queued' };
  }

  /** The result of the acquisition's own attempt. */
  #blocked(
    acquisition: Acquisition,
    turn: Extract<EtcdTurn, { status: 'blocked' }>,
    revision: number,
    call: Call,
  ): Extract<AttemptOutcome, { status: 'blocked' }> {
    this.#returnLease(acquisition);
    return this.#blockedBy(turn, acquisition, revision, call);
  }

  #blockedBy(
    { nearest, byHolders }: Extract<EtcdTurn, { status: 'blocked' }>,
    { lease, request }: Acquisition,
    revision: number,
    call: Call,
  ): Extract<AttemptOutcome, { status: 'blocked' }> {
    if (lease === undefined && byHolders) this.#leases.prepare(request.ttlMs, call);
    return { status: 'blocked', nearest, revision };
  }

  /** A waiter may wait longer than a lease lasts: the next acquisition uses the lease. */
  #returnLease(acquisition: Acquisition): void {
    if (acquisition.lease === undefined || acquisition.hasUnansweredWrite) return;
    this.#leases.release(acquisition.lease);
    acquisition.lease = undefined;
  }
}
