import { type AcquireRequest, type Attempt, type Call, PRIORITIES } from '@locks/core/backend';
import type { Value } from '../driver/postgres-driver.ts';
import {
  NoConnectionError,
  type OutgoingStatement,
  rejectLate,
  type StatementResult,
} from '../driver/postgres-statements.ts';
import type { LeaseStatements } from './lease-statements.ts';
import type { NotifiedWaiters } from './notified-waiters.ts';
import { acquireColumns } from './modes.ts';
import { nameBytes } from './name-bytes.ts';
import { type AttemptReply, parseAttempt, parseHandOffs, toGrant } from './replies.ts';
import { insertStatement, mayBeUncontended, toUncontendedGrant } from './uncontended-statements.ts';

/** The attempt queues however many wait: see migrations/1/10-acquire.sql. */
const ANY_NUMBER = -1;

/** The most attempts of one statement: it locks the row of the resource, and a release waits for that lock. */
const MAX_ATTEMPTS = 100;

interface PendingAttempt {
  readonly request: AcquireRequest;
  readonly enqueue: boolean;
  readonly call: Call;
  /** The time before the statement was sent, on the caller's clock. */
  sentAt: number;
  /** Whether the plain insert is worth a try; `false` once it has found a row of this name. */
  mayBeUncontended: boolean;
  resolve(attempt: Attempt): void;
  reject(error: unknown): void;
}

/** The error of attempts whose caller listens no more. */
const abandonedError = new NoConnectionError();

/**
 * One queue of attempts for each name. The attempts of this process on a name go to the store in the order in which they
 * were called (docs/spec.md §7.1): one statement at a time, with all that came meanwhile. Statements on several connections
 * would overtake each other.
 */
export class AttemptQueues {
  readonly #statements: LeaseStatements;
  readonly #waiters: NotifiedWaiters;
  /** The attempts that are not sent yet, by name; an empty list while the last ones are under way. */
  readonly #queues = new Map<string, PendingAttempt[]>();

  constructor(statements: LeaseStatements, waiters: NotifiedWaiters) {
    this.#statements = statements;
    this.#waiters = waiters;
  }

  attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    return new Promise((resolve, reject) => {
      const attempt = { request, enqueue, call, sentAt: 0, mayBeUncontended: true, resolve, reject };
      const queue = this.#queues.get(request.resource);
      if (queue !== undefined) {
        queue.push(attempt);
        return;
      }
      const created = [attempt];
      this.#queues.set(request.resource, created);
      void this.#work(request.resource, created);
    });
  }

  isUnsent({ resource, acquisitionId }: AcquireRequest): boolean {
    const queue = this.#queues.get(resource) ?? [];
    return queue.some(({ request }) => request.acquisitionId === acquisitionId);
  }

  /** Removes an attempt that was not sent. `true`: the store has never received the acquisition id. */
  withdraw({ resource, acquisitionId }: AcquireRequest): boolean {
    const queue = this.#queues.get(resource);
    const index = queue?.findIndex(({ request }) => request.acquisitionId === acquisitionId) ?? -1;
    if (queue === undefined || index < 0) return false;
    const [attempt] = queue.splice(index, 1);
    attempt?.reject(abandonedError);
    // An acquisition that is registered as a waiter was sent before. Single attempts are never registered.
    return attempt?.enqueue === true && this.#waiters.known.get(acquisitionId) === undefined;
  }

  async #work(resource: string, queue: PendingAttempt[]): Promise<void> {
    while (queue.length > 0) await this.#send(queue);
    this.#queues.delete(resource);
  }

  /**
   * Sends all attempts that are in the queue when a connection is free: a single one by the plain insert, if that is worth a
   * try.
   */
  async #send(queue: PendingAttempt[]): Promise<void> {
    const statements = this.#statements;
    let batch: readonly PendingAttempt[] = [];
    /** The attempt that is sent by the plain insert. */
    let plain: PendingAttempt | undefined;
    try {
      const connection = await statements.connection(PRIORITIES.acquire);
      batch = takeWanted(queue);
      const [first] = batch;
      if (first === undefined) return connection.giveBack();
      const { request, call } = first;
      if (
        batch.length > 1 ||
        !first.mayBeUncontended ||
        !mayBeUncontended(request, statements, this.#waiters)
      )
        return this.#answered(batch, await statements.send(connection, this.#statement(batch)));
      plain = first;
      const insert = insertStatement(statements.sql, request, call);
      const grant = toUncontendedGrant(request, await statements.send(connection, insert));
      if (grant !== undefined) return first.resolve({ status: 'granted', grant });
      first.mayBeUncontended = false;
      queue.unshift(first);
    } catch (error) {
      // The insert may have taken effect, so the store may know the id from now on.
      if (plain?.enqueue === true) this.#waiters.register(plain.request, plain.call);
      rejectAll(batch.length > 0 ? [...batch] : queue, error);
    }
  }

  #answered(batch: readonly PendingAttempt[], { rows }: StatementResult): void {
    const waiters = this.#waiters;
    const lines = (rows[0]?.[0] ?? '').split('\n');
    const [{ call, sentAt }] = batch as [PendingAttempt];
    const handOffs = parseHandOffs(lines.slice(batch.length).join('\n'));
    waiters.handOffAll(handOffs, () => call.now() - sentAt);
    for (const [at, attempt] of batch.entries()) {
      const reply = parseAttempt(lines[at] ?? '');
      waiters.answered(attempt.request, reply, attempt.sentAt);
      attempt.resolve(toAttempt(attempt, reply));
    }
  }

  /** Calls the schema's function once for all attempts. */
  #statement(batch: readonly PendingAttempt[]): OutgoingStatement {
    const { sql } = this.#statements;
    const waiters = this.#waiters;
    for (const attempt of batch) {
      attempt.sentAt = attempt.call.now();
      if (attempt.enqueue) waiters.register(attempt.request, attempt.call);
    }
    const [first] = batch as [PendingAttempt];
    const name = nameBytes(first.request.resource);
    const leftMs = Math.max(...batch.map(({ call, sentAt }) => call.deadline - sentAt));
    const { sentAt } = first;
    const columns = acquireColumns(batch.map(({ request }) => request));
    const ways = [
      batch.map(({ request }) => request.steal === true),
      batch.map(({ enqueue }) => enqueue),
      batch.map(({ request }) => request.maxWaiters ?? ANY_NUMBER),
    ];
    if (batch.length > 1)
      return {
        text: sql.acquireInOrder,
        values: [name, ...columns, waiters.client, ...ways],
        sentAt,
        leftMs,
      };
    const only = ([value]: readonly Value[]): Value => value;
    const values = [name, ...columns.map(only), waiters.client, ...ways.map(only)];
    return { text: sql.acquire, values, sentAt, leftMs };
  }
}

function toAttempt({ request, sentAt }: PendingAttempt, reply: AttemptReply): Attempt {
  switch (reply.status) {
    case 'granted':
      return { status: 'granted', grant: toGrant(request, reply, sentAt) };
    case 'queued':
      return { status: 'contended' };
    case 'conflict':
    case 'full':
      return reply;
    default:
      return reply satisfies never;
  }
}

/**
 * Whether an attempt is still to be sent. One that ended before is not: on another connection it could arrive after its own
 * abandon.
 */
function isWanted({ call }: PendingAttempt): boolean {
  return call.signal?.aborted !== true && call.now() < call.deadline;
}

function takeWanted(queue: PendingAttempt[]): readonly PendingAttempt[] {
  const batch: PendingAttempt[] = [];
  let taken = 0;
  for (const attempt of queue) {
    taken += 1;
    if (isWanted(attempt)) batch.push(attempt);
    else if (attempt.call.signal?.aborted === true) attempt.reject(abandonedError);
    else rejectLate(attempt.reject);
    if (batch.length === MAX_ATTEMPTS) break;
  }
  queue.splice(0, taken);
  return batch;
}

function rejectAll(attempts: PendingAttempt[], error: unknown): void {
  for (const attempt of attempts.splice(0)) attempt.reject(error);
}
