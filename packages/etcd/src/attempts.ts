import type { Call, Conflict, Grant, LockMode } from '@locks/core/backend';
import type { ICompare, IRequestOp } from 'etcd3';
import type { Acquisition } from './acquisition.ts';
import type { Acquisitions } from './acquisitions.ts';
import { type Answer, answerOf, keysAt, termOf } from './answer.ts';
import {
  absent,
  inAccordWith,
  modifiedAt,
  noExclusiveHold,
  nothingBefore,
  nothingIn,
  onlySharedHolds,
  onlyWaiters,
  read,
  unchangedSince,
  when,
} from './conditions.ts';
import { encodeHold, encodeWaiter, type Entry } from './entry.ts';
import { type EtcdPort, Sendings } from './etcd-port.ts';
import { holdOf, keepAliveFor, validityOf } from './granting.ts';
import type { Lease, Leases } from './leases.ts';
import { ChangedMeanwhileError, isLeaseGone } from './retryable.ts';
import { conflictWith, type Turn, turnOf } from './turn.ts';
import { readMarker, type Session, sessionStands, type WaiterSession } from './waiter-session.ts';

/** What an attempt came to, for whoever waits to be told of the next chance. */
export type Outcome =
  | { readonly status: 'granted'; readonly grant: Grant }
  | { readonly status: 'blocked'; readonly by: readonly Entry[]; readonly revision: number }
  /** Was in the queue, and is not any more. */
  | { readonly status: 'out-of-line' }
  | Conflict;

/** A write that depends on what was read is tried so often before the attempt as a whole is. */
const TRIES = 20;
/** More conditions than this are not worth their weight: the state is read first. */
const MOST_CONDITIONS = 32;

/** Ways into a resource. Each is one transaction, whose conditions leave nothing to what was read before. */
export class Attempts {
  readonly #port: EtcdPort;
  readonly #leases: Leases;
  readonly #session: WaiterSession;
  readonly #acquisitions: Acquisitions;

  constructor(port: EtcdPort, leases: Leases, session: WaiterSession, acquisitions: Acquisitions) {
    this.#port = port;
    this.#leases = leases;
    this.#session = session;
    this.#acquisitions = acquisitions;
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
      const lease = this.#acquisitions.hasOthers(acquisition) ? acquisition.lease : await this.#lease(acquisition, call);
      const session =
        lease === undefined ? await this.#session.ensure(call) : this.#session.current;
      const answer = await this.#enter(acquisition, lease, session, call);
      if (answer === undefined) continue;
      const { own, others } = answer;
      if (own !== undefined) {
        if (own.held) {
          if (answer.grant !== undefined) return { status: 'granted', grant: answer.grant };
          continue;
        }
        this.#queued(acquisition, own, session);
        const turn = turnOf(others, own.mode, own.createRevision);
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
    const leases = await Promise.all(acquisitions.map((each) => this.#lease(each, call)));
    let conditions = acquisitions.flatMap((each) => nothingIn(each.range));
    for (let tries = 0; tries < TRIES; tries += 1) {
      const sent = await this.#write(acquisitions, leases, conditions, call);
      if (sent === undefined) {
        leases.splice(0, leases.length, ...(await Promise.all(acquisitions.map((each) => this.#lease(each, call)))));
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
      const lease = await this.#lease(acquisition, call);
      const [answer] = (await this.#claimWith(acquisition, lease, conditions, call)) ?? [];
      if (answer === undefined) continue;
      const { own, others, revision, grant } = answer;
      if (own === undefined) return this.#outOfLine(acquisition);
      if (own.held) {
        if (grant !== undefined) return { status: 'granted', grant };
        continue;
      }
      acquisition.place = own;
      turn = turnOf(others, own.mode, own.createRevision);
      if (turn.status === 'blocked') return this.#blocked(acquisition, turn, revision, call);
    }
    throw new ChangedMeanwhileError('The queue of the lock changed again and again.');
  }

  /** Reads where an acquisition in the queue stands. */
  async look(
    acquisition: Acquisition,
    call: Call,
  ): Promise<{ readonly status: 'free' } | Extract<Outcome, { status: 'blocked' | 'out-of-line' }>> {
    const response = await this.#port.txn({ compare: [], success: [read(acquisition.range)], failure: [] }, call);
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
    const turn = turnOf(others, own.mode, own.createRevision);
    return turn.status === 'free' ? turn : this.#blocked(acquisition, turn, revision, call);
  }

  /** Ends every hold and takes their place, ahead of the queue. */
  async steal(acquisition: Acquisition, call: Call): Promise<Outcome> {
    const { range, key, request } = acquisition;
    let lease = await this.#lease(acquisition, call);
    let conditions: ICompare[] = [nothingIn(range)];
    let ends: IRequestOp[] = [];
    for (let tries = 0; tries < TRIES; tries += 1) {
      const sent = await this.#write([acquisition], [lease], conditions, call, ends);
      if (sent === undefined) {
        lease = await this.#lease(acquisition, call);
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
    const ways = [
      ...(lease === undefined ? [] : waysToHold(acquisition, lease)),
      ...(session === undefined ? [] : waysToQueue(acquisition, session, lease === undefined)),
    ];
    if (session !== undefined) acquisition.session = session;
    const operations = [inOrderOf(ways), read(acquisition.range), ...(session === undefined ? [] : [readMarker(session)])];
    const sent = await this.#send([acquisition], lease === undefined ? [] : [lease], operations, call);
    if (sent === undefined) return undefined;
    if (session !== undefined) this.#session.seen(session, keysAt(sent.response, 2)[0]);
    const [answer] = await this.#settle([acquisition], sent, call);
    return answer;
  }

  async #claimWith(
    acquisition: Acquisition,
    lease: Lease,
    conditions: ICompare[],
    call: Call,
  ): Promise<Answered[] | undefined> {
    const operations = [when(conditions, [putHold(acquisition, lease)]), read(acquisition.range)];
    const sent = await this.#send([acquisition], [lease], operations, call);
    return sent && (await this.#settle([acquisition], sent, call));
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
    const operations = [when(conditions, [...also, ...puts]), ...acquisitions.map(({ range }) => read(range))];
    const sent = await this.#send(acquisitions, leases, operations, call);
    if (sent === undefined) return undefined;
    const answers = await this.#settle(acquisitions, sent, call);
    const grants = answers.map(({ grant }) => grant).filter((grant) => grant !== undefined);
    return { grants: grants.length === acquisitions.length ? grants : undefined, answers };
  }

  /** Sends what may write the keys of these acquisitions; `undefined` when a lease was no more and nothing happened. */
  async #send(
    acquisitions: readonly Acquisition[],
    leases: readonly Lease[],
    operations: IRequestOp[],
    call: Call,
  ): Promise<Sent | undefined> {
    const doubtful = acquisitions.map((each) => each.doubtful);
    const sendings = new Sendings();
    const answered = (): void => {
      // Only now: whoever gives the acquisition up meanwhile must know that this is on its way (docs/spec.md §2.2).
      if (!sendings.repeated) acquisitions.forEach((each, index) => (each.doubtful = doubtful[index] === true));
    };
    for (const each of acquisitions) each.doubtful = true;
    const sentAt = call.now();
    const renewals = new Map(leases.map((lease) => [lease.id, keepAliveFor(this.#leases, lease)]));
    try {
      const response = await this.#port.txn({ compare: [], success: operations, failure: [] }, call, sendings);
      answered();
      return { response, sentAt, renewals };
    } catch (error) {
      if (!isLeaseGone(error)) throw error;
      answered();
      for (const each of acquisitions) each.lease = undefined;
      return undefined;
    }
  }

  /** The states follow the write in the answer. What holds now gets its grant. */
  async #settle(
    acquisitions: readonly Acquisition[],
    { response, sentAt, renewals }: Sent,
    call: Call,
  ): Promise<Answered[]> {
    const answers: Answered[] = [];
    for (const [index, acquisition] of acquisitions.entries()) {
      const answer = answerOf(response, 1 + index, acquisition.request.acquisitionId);
      acquisition.assertWanted();
      const { own } = answer;
      if (own?.held !== true) acquisition.hold = undefined;
      let grant = acquisition.hold?.grant;
      if (own?.held === true && grant === undefined) {
        const lease = leaseOf(acquisition, own);
        const renewal = renewals.has(lease.id) ? renewals.get(lease.id) : this.#leases.renew(lease);
        const validity = await validityOf(this.#leases, lease, sentAt, termOf(response), renewal);
        acquisition.assertWanted();
        if (validity !== undefined) {
          this.#leaveLine(acquisition);
          grant = holdOf(acquisition, own, lease, validity, call).grant;
        }
      }
      answers.push({ ...answer, grant });
    }
    // What was put aside and not used has been waiting since.
    for (const { lease } of acquisitions) if (lease !== undefined) lease.fresh = false;
    return answers;
  }

  async #lease(acquisition: Acquisition, call: Call): Promise<Lease> {
    if (acquisition.lease !== undefined) return acquisition.lease;
    const lease = await this.#leases.take(acquisition.request.ttlMs, call);
    if (acquisition.ended) this.#leases.giveBack(lease);
    acquisition.assertWanted();
    acquisition.lease = lease;
    return lease;
  }

  #queued(acquisition: Acquisition, own: Entry, session: Session | undefined): void {
    if (acquisition.place === undefined) this.#session.enter();
    acquisition.place = own;
    if (session !== undefined) acquisition.session = session;
  }

  #leaveLine(acquisition: Acquisition): void {
    if (acquisition.place === undefined) return;
    acquisition.place = undefined;
    this.#session.leave();
  }

  #outOfLine(acquisition: Acquisition): { readonly status: 'out-of-line' } {
    this.#leaveLine(acquisition);
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

type Answered = Answer & { readonly grant: Grant | undefined };

interface Sent {
  readonly response: Awaited<ReturnType<EtcdPort['txn']>>;
  readonly sentAt: number;
  readonly renewals: ReadonlyMap<string, ReturnType<typeof keepAliveFor>>;
}

const MOST_STOLEN = 100;

interface Way {
  readonly conditions: ICompare[];
  readonly write: IRequestOp;
}

function waysToHold(acquisition: Acquisition, lease: Lease): Way[] {
  const { range, request } = acquisition;
  const write = putHold(acquisition, lease);
  const alone: Way = { conditions: [nothingIn(range)], write };
  return request.mode.kind === 'shared' ? [{ conditions: onlySharedHolds(range), write }, alone] : [alone];
}

function waysToQueue(acquisition: Acquisition, session: Session, alsoAlone: boolean): Way[] {
  const { key, range, request } = acquisition;
  const value = encodeWaiter({ mode: request.mode, label: request.label });
  const write = { request_put: { key, value, lease: session.lease } };
  const stands = sessionStands(session);
  return [
    { conditions: [stands, absent(key), ...inAccordWith(range, request.mode)], write },
    ...(alsoAlone ? [{ conditions: [stands, nothingIn(range)], write }] : []),
  ];
}

/** The first way whose conditions hold. */
function inOrderOf(ways: readonly Way[]): IRequestOp {
  const [first, ...rest] = ways;
  if (first === undefined) return when([], []);
  return when(first.conditions, [first.write], rest.length === 0 ? [] : [inOrderOf(rest)]);
}

function putHold({ key, request, place }: Acquisition, lease: Lease): IRequestOp {
  // A permit that was queued under another limit is granted under the present one.
  const value = encodeHold({ mode: place?.mode ?? request.mode, label: request.label });
  return { request_put: { key, value, lease: lease.id } };
}

/**
 * What makes a claim safe whatever was read before; `undefined` where the state must be read first. Nothing that is
 * added later stands before this place, but for what is stolen.
 */
function claimConditions({ key, range, place, request }: Acquisition, turn: Turn | undefined): ICompare[] | undefined {
  if (place === undefined) return undefined;
  // A grant by an earlier claim, or another limit, would have written it again.
  const asBefore = modifiedAt(key, place.modRevision);
  switch (request.mode.kind) {
    case 'exclusive':
      return [asBefore, nothingBefore(range, place.createRevision), onlyWaiters(range)];
    case 'shared': {
      if (turn === undefined) return undefined;
      const writers = turn.status === 'free' ? [] : turn.by.filter(({ held }) => !held);
      if (writers.length > MOST_CONDITIONS) return undefined;
      return [asBefore, noExclusiveHold(range), ...writers.map((writer) => absent(writer.key))];
    }
    case 'permit':
      // A theft, which alone could make it wrong, writes the entries of waiters again.
      return turn?.status === 'free' ? [asBefore] : undefined;
    default:
      return request.mode satisfies never;
  }
}

function theft(entry: Entry, mode: LockMode): IRequestOp[] {
  if (entry.held) return [{ request_delete_range: { key: entry.key } }];
  if (mode.kind !== 'permit') return [];
  return [{ request_put: { key: entry.key, ignore_value: true, ignore_lease: true } }];
}

/** Most often the one that was put aside; another when the same id was granted elsewhere. */
function leaseOf({ lease, request }: Acquisition, own: Entry): Lease {
  if (lease?.id === own.lease) return lease;
  const wantedSeconds = Math.ceil(request.ttlMs / 1_000);
  const foreign = { id: own.lease, wantedSeconds, ttlSeconds: wantedSeconds };
  return { ...foreign, grantedFrom: 0, fresh: false, endsAt: 0 };
}
