import type { Call, Conflict, Grant } from '@locks/core/backend';
import type { ICompare, IRequestOp } from 'etcd3';
import type { Acquisition } from './acquisition.ts';
import type { Acquisitions } from './acquisitions.ts';
import { type Answer, answerOf, keysAt } from './answer.ts';
import { absent, nothingIn, read, unchangedSince, when } from './conditions.ts';
import type { Entry } from './entry.ts';
import type { EtcdPort } from './etcd-port.ts';
import { type Answered, HoldWrites, putHold } from './hold-writes.ts';
import type { Lease, Leases } from './leases.ts';
import { Lines } from './line.ts';
import { ChangedMeanwhileError } from './retryable.ts';
import { conflictWith, placeOf, type Turn, turnOf } from './turn.ts';
import { readMarker, type Session, type WaiterSession } from './waiter-session.ts';
import { claimConditions, firstOf, theft, waysToHold, waysToQueue } from './ways.ts';

/** What an attempt came to, for whoever waits to be told of the next chance. */
export type Outcome =
  | { readonly status: 'granted'; readonly grant: Grant }
  | { readonly status: 'blocked'; readonly by: readonly Entry[]; readonly revision: number }
  /** Was in the queue, and is not any more. */
  | { readonly status: 'out-of-line' }
  | Conflict;

/** A write that depends on what was read is tried so often before the attempt as a whole is. */
const TRIES = 20;
/** A server takes 128 operations in one transaction. */
const MOST_STOLEN = 100;

/** Ways into a resource. Each is one transaction, whose conditions leave nothing to what was read before. */
export class Attempts {
  readonly #port: EtcdPort;
  readonly #leases: Leases;
  readonly #session: WaiterSession;
  readonly #acquisitions: Acquisitions;
  readonly #writes: HoldWrites;
  readonly #lines: Lines;

  constructor(port: EtcdPort, leases: Leases, session: WaiterSession, acquisitions: Acquisitions) {
    this.#port = port;
    this.#leases = leases;
    this.#session = session;
    this.#acquisitions = acquisitions;
    this.#writes = new HoldWrites(port, leases, session);
    this.#lines = new Lines(session, this.#writes);
  }

  /** Grants, or queues. */
  async enqueue(acquisition: Acquisition, call: Call): Promise<Outcome> {
    for (let tries = 0; tries < TRIES; tries += 1) {
      if (acquisition.place !== undefined) {
        const outcome = await this.claim(acquisition, call);
        if (outcome.status !== 'out-of-line') return outcome;
        continue;
      }
      // Where others of this process hold or wait it is in use, most likely: no lease is put aside for it.
      const lease = this.#acquisitions.hasOthers(acquisition)
        ? acquisition.lease
        : await this.#writes.lease(acquisition, call);
      const session = lease === undefined ? await this.#session.ensure(call) : this.#session.use();
      const answer = await this.#enter(acquisition, lease, session, call);
      if (answer === undefined) continue;
      const { own, others } = answer;
      if (own !== undefined) {
        if (own.held) {
          if (answer.grant !== undefined) return { status: 'granted', grant: answer.grant };
          continue;
        }
        this.#queued(acquisition, own, session);
        const turn = turnOf(others, own.mode, placeOf(own));
        if (turn.status === 'blocked') return this.#blocked(acquisition, turn, answer.revision, call);
        continue;
      }
      const conflict = conflictWith(others, acquisition.request.mode);
      if (conflict !== undefined) return { status: 'conflict', with: conflict };
      await this.#session.ensure(call);
    }
    throw new ChangedMeanwhileError('The queue of the lock changed again and again while it was entered.');
  }

  /** Grants, or leaves nothing behind: all of them, or none. */
  async grab(
    acquisitions: readonly Acquisition[],
    call: Call,
  ): Promise<readonly Grant[] | Extract<Outcome, { status: 'blocked' | 'conflict' }>> {
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
        const { own, others, revision } = sent.answers[index] as Answer;
        if (own?.held === true) continue;
        const conflict = conflictWith(others, request.mode);
        if (conflict !== undefined) return { status: 'conflict', with: conflict };
        const turn = turnOf(others, request.mode);
        if (turn.status === 'blocked') return { ...turn, revision };
      }
      conditions = acquisitions.flatMap(({ range }, index) =>
        unchangedSince(range, (sent.answers[index] as Answer).revision),
      );
    }
    throw new ChangedMeanwhileError('The lock changed hands again and again while it was tried.');
  }

  /** For an acquisition in the queue: grants it if its turn has come. */
  async claim(acquisition: Acquisition, call: Call, known?: Turn): Promise<Outcome> {
    let turn = known;
    for (let tries = 0; tries < TRIES; tries += 1) {
      const { place } = acquisition;
      if (place === undefined) return { status: 'out-of-line' };
      const conditions = claimConditions(acquisition, turn);
      if (conditions === undefined) {
        const look = await this.look(acquisition, call);
        if (look.status !== 'free') return look;
        turn = { status: 'free' };
        continue;
      }
      const lease = await this.#writes.lease(acquisition, call);
      const [answer] = (await this.#claimWith(acquisition, lease, conditions, call)) ?? [];
      if (answer === undefined) continue;
      const { own, others, revision, grant } = answer;
      if (own === undefined) return this.#outOfLine(acquisition);
      if (own.held) {
        if (grant !== undefined) return { status: 'granted', grant };
        continue;
      }
      acquisition.place = own;
      turn = turnOf(others, own.mode, placeOf(own));
      if (turn.status === 'blocked') return this.#blocked(acquisition, turn, revision, call);
    }
    throw new ChangedMeanwhileError('The queue of the lock changed again and again.');
  }

  /** Reads where an acquisition in the queue stands. */
  async look(
    acquisition: Acquisition,
    call: Call,
  ): Promise<{ readonly status: 'free' } | Extract<Outcome, { status: 'blocked' | 'out-of-line' }>> {
    const response = await this.#port.txn(
      { compare: [], success: [read(acquisition.range)], failure: [] },
      call,
    );
    acquisition.assertWanted();
    return this.stands(acquisition, answerOf(response, 0, acquisition.request.acquisitionId), call);
  }

  stands(
    acquisition: Acquisition,
    { own, others, revision }: Answer,
    call: Call,
  ): { readonly status: 'free' } | Extract<Outcome, { status: 'blocked' | 'out-of-line' }> {
    if (own === undefined) return this.#outOfLine(acquisition);
    // A claim that was not answered had come in: the next one fails, and gets its grant.
    if (own.held) return { status: 'free' };
    acquisition.place = own;
    const turn = turnOf(others, own.mode, placeOf(own));
    return turn.status === 'free' ? turn : this.#blocked(acquisition, turn, revision, call);
  }

  /** Ends every hold and takes their place, ahead of the queue. */
  async steal(acquisition: Acquisition, call: Call): Promise<Outcome> {
    const { range, key, request } = acquisition;
    let lease = await this.#writes.lease(acquisition, call);
    let conditions: ICompare[] = [nothingIn(range)];
    let ends: IRequestOp[] = [];
    for (let tries = 0; tries < TRIES; tries += 1) {
      const sent = await this.#write([acquisition], [lease], conditions, call, ends);
      if (sent === undefined) {
        lease = await this.#writes.lease(acquisition, call);
        continue;
      }
      const [grant] = sent.grants ?? [];
      if (grant !== undefined) return { status: 'granted', grant };
      const { others, revision } = sent.answers[0] as Answer;
      const conflict = conflictWith(
        others.filter(({ held }) => !held),
        request.mode,
      );
      if (conflict !== undefined) return { status: 'conflict', with: conflict };
      ends = others.flatMap((entry) => theft(entry, request.mode));
      if (ends.length > MOST_STOLEN) {
        throw new Error(
          `${others.length} hold or wait for it: no more than ${MOST_STOLEN} can be robbed in one step. Use forceRelease.`,
        );
      }
      conditions = [unchangedSince(range, revision), absent(key)];
    }
    throw new ChangedMeanwhileError('The lock changed hands again and again while it was stolen.');
  }

  async #enter(
    acquisition: Acquisition,
    lease: Lease | undefined,
    session: Session | undefined,
    call: Call,
  ): Promise<Answered | undefined> {
    // One that may have been queued already would keep all those out that came along.
    if (lease === undefined && session !== undefined && !acquisition.doubtful) {
      const answer = await this.#lines.enter(acquisition, session, call);
      acquisition.assertWanted();
      // Granted to another client under the same id: what its lease is worth is asked below.
      if (answer?.own?.held !== true) return answer;
    }
    const ways = [
      ...(lease === undefined ? [] : waysToHold(acquisition, lease)),
      ...(session === undefined ? [] : waysToQueue([acquisition], session, lease === undefined)),
    ];
    if (session !== undefined) acquisition.session = session;
    const operations = [
      firstOf(ways),
      read(acquisition.range),
      ...(session === undefined ? [] : [readMarker(session)]),
    ];
    const sent = await this.#writes.send([acquisition], lease === undefined ? [] : [lease], operations, call);
    if (sent === undefined) return undefined;
    if (session !== undefined) this.#session.seen(session, keysAt(sent.response, 2)[0]);
    const [answer] = await this.#writes.settle([acquisition], sent, call);
    return answer;
  }

  async #claimWith(
    acquisition: Acquisition,
    lease: Lease,
    conditions: ICompare[],
    call: Call,
  ): Promise<Answered[] | undefined> {
    const operations = [when(conditions, [putHold(acquisition, lease)]), read(acquisition.range)];
    const sent = await this.#writes.send([acquisition], [lease], operations, call);
    return sent && (await this.#writes.settle([acquisition], sent, call));
  }

  /** One write of several holds, or of none. */
  async #write(
    acquisitions: readonly Acquisition[],
    leases: readonly Lease[],
    conditions: ICompare[],
    call: Call,
    also: readonly IRequestOp[] = [],
  ): Promise<{ grants: readonly Grant[] | undefined; answers: readonly Answer[] } | undefined> {
    const puts = acquisitions.map((each, index) => putHold(each, leases[index] as Lease));
    const operations = [
      when(conditions, [...also, ...puts]),
      ...acquisitions.map(({ range }) => read(range)),
    ];
    const sent = await this.#writes.send(acquisitions, leases, operations, call);
    if (sent === undefined) return undefined;
    const answers = await this.#writes.settle(acquisitions, sent, call);
    const grants = answers.map(({ grant }) => grant).filter((grant) => grant !== undefined);
    return { grants: grants.length === acquisitions.length ? grants : undefined, answers };
  }

  #queued(acquisition: Acquisition, own: Entry, session: Session | undefined): void {
    if (acquisition.place === undefined) this.#session.enter();
    acquisition.place = own;
    if (session !== undefined) acquisition.session = session;
  }

  #outOfLine(acquisition: Acquisition): { readonly status: 'out-of-line' } {
    this.#writes.leaveLine(acquisition);
    return { status: 'out-of-line' };
  }

  #blocked(
    acquisition: Acquisition,
    { by }: Extract<Turn, { status: 'blocked' }>,
    revision: number,
    call: Call,
  ): Extract<Outcome, { status: 'blocked' }> {
    // It may wait longer than a lease lasts: whoever comes next uses it.
    if (acquisition.lease !== undefined && !acquisition.doubtful) {
      this.#leases.giveBack(acquisition.lease);
      acquisition.lease = undefined;
    }
    if (acquisition.lease === undefined && by.every(({ held }) => held)) {
      this.#leases.prepare(acquisition.request.ttlMs, call);
    }
    return { status: 'blocked', by, revision };
  }
}
