import type { Call, Conflict } from '@locks/core/backend';
import type { Acquisition } from './acquisition.ts';
import type { Acquisitions } from './acquisitions.ts';
import type { AttemptOutcome } from './attempt-outcome.ts';
import type { Claims } from './claims.ts';
import { read } from './conditions.ts';
import { EnqueueBatches } from './enqueue-batches.ts';
import type { EtcdEntry } from './etcd-entry.ts';
import { retryWhileChanging } from './etcd-errors.ts';
import { SendCount } from './etcd-port.ts';
import type { HoldResult, HoldWrites } from './hold-writes.ts';
import type { EtcdLease } from './lease-pool.ts';
import { conflictWith, positionOf, turnOf } from './queue-turns.ts';
import { firstMatching, holdBranches, queueBranches } from './txn-branches.ts';
import { keysAt, withOthers } from './txn-responses.ts';
import { type EtcdWaiterSession, readMarker } from './waiter-session.ts';
import type { EtcdWaiterSessions } from './waiter-sessions.ts';

/** The way into the queue: one transaction that grants a free lock, or else puts the acquisition at the end of the queue. */
export class QueueEntrance {
  readonly #sessions: EtcdWaiterSessions;
  readonly #acquisitions: Acquisitions;
  readonly #writes: HoldWrites;
  readonly #claims: Claims;
  readonly #batches: EnqueueBatches;

  constructor(sessions: EtcdWaiterSessions, acquisitions: Acquisitions, writes: HoldWrites, claims: Claims) {
    this.#sessions = sessions;
    this.#acquisitions = acquisitions;
    this.#writes = writes;
    this.#claims = claims;
    this.#batches = new EnqueueBatches(sessions, writes);
  }

  /** Grants the lock or puts the acquisition into the queue; an acquisition that is queued already claims its turn. */
  async enter(acquisition: Acquisition, call: Call): Promise<AttemptOutcome> {
    const message = 'The queue of the lock changed again and again while it was entered.';
    return await retryWhileChanging<AttemptOutcome>(message, async () => {
      if (acquisition.position !== undefined) {
        const outcome = await this.#claims.claim(acquisition, { type: 'unread' }, call);
        return outcome.status === 'not-queued' ? undefined : outcome;
      }
      // No lease is reserved if other acquisitions of this process hold or wait: the resource is most likely in use.
      const lease = this.#acquisitions.hasOthers(acquisition)
        ? acquisition.lease
        : await this.#writes.lease(acquisition, call);
      const session = lease === undefined ? await this.#sessions.ensure(call) : this.#sessions.use();
      const answer = await this.#send(acquisition, lease, session, call);
      if (answer === undefined) return undefined;
      const { own, others } = answer;
      return own === undefined
        ? await this.#notEntered(acquisition, others, call)
        : this.#entered(acquisition, own, answer, session, call);
    });
  }

  /** Returns `undefined` where the acquisition must claim its turn, or ask how long the lease of its hold lasts. */
  #entered(
    acquisition: Acquisition,
    own: EtcdEntry,
    { others, grant, partial, revision }: HoldResult,
    session: EtcdWaiterSession | undefined,
    call: Call,
  ): AttemptOutcome | undefined {
    if (own.held) return grant && { status: 'granted', grant };
    this.#sessions.queued(acquisition, own);
    if (session !== undefined) acquisition.session = session;
    const turn = turnOf(others, own.mode, positionOf(own));
    // A blocker that was read at the end of the queue blocks whatever is ahead of it.
    if (turn.status === 'blocked') return this.#claims.blocked(acquisition, turn, revision, call);
    const [nearest] = partial ? others.slice(-1) : [];
    // One shared read finds the writer that readers behind other readers wait for.
    return nearest && { status: 'blocked', nearest, blockerUnread: true, revision };
  }

  /** Returns `undefined` where only a session was missing, which there is afterwards. */
  async #notEntered(
    { request }: Acquisition,
    others: readonly EtcdEntry[],
    call: Call,
  ): Promise<Conflict | undefined> {
    const conflict = conflictWith(others, request.mode);
    if (conflict !== undefined) return conflict;
    // A foreign key never ends by itself: the queue cannot be entered while it is there.
    const foreign = others.find((entry) => entry.foreign);
    if (foreign !== undefined) {
      throw new Error(
        `the key ${foreign.key.toString('utf8')} does not belong to a lock, but is among the keys of this lock: delete it, or use another prefix`,
      );
    }
    await this.#sessions.ensure(call);
    return undefined;
  }

  /** Returns the resource as it is afterwards; `undefined` if a lease was gone and nothing was written. */
  async #send(
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
    const leases = lease === undefined ? [] : [lease];
    const sent = await this.#writes.send([acquisition], leases, operations, call, new SendCount());
    if (sent === undefined) return undefined;
    if (session !== undefined) this.#sessions.seen(session, keysAt(sent.response, 2)[0]);
    const [answer] = await this.#writes.readResults([acquisition], sent, call, 1);
    return answer && withOthers(answer, sent.response, 0, 0);
  }
}
