import { randomBytes } from 'node:crypto';
import type {
  AcquireRequest,
  Attempt,
  BackendCapabilities,
  Call,
  Conflict,
  Grant,
  Holder,
  LockBackend,
  RenewItem,
  ResourceState,
  RenewalStatus,
} from '@locks/core/backend';
import { PRIORITIES, refuseAfterClose, withTimeLimit } from '@locks/core/backend';
import { Connections } from './connections.ts';
import { liveState, toHolder } from './live-state.ts';
import { isRetryableError, QueueFullError } from './mysql-error.ts';
import { MysqlLocalWaiters } from './mysql-local-waiters.ts';
import { MysqlStatements } from './mysql-statements.ts';
import { MysqlStore, ownLimit, unhurried } from './mysql-store.ts';
import { type CheckedMysqlOptions, checkOptions, type MysqlBackendOptions } from './options.ts';
import { OwnPool } from './own-pool.ts';
import { Renewals } from './renewals.ts';
import { micros } from './row-decision.ts';
import { RowWriters } from './row-writers.ts';
import { Schema } from './schema.ts';
import { Sweeper } from './sweeper.ts';
import { tablesOf } from './tables.ts';
import { takeMany } from './take-many.ts';
import { takenGrant, takenRow } from './taken-row.ts';

const capabilities = {
  tenure: 'lease',
  reach: 'network',
  modes: ['exclusive', 'shared', 'permit'],
  order: 'fifo',
  fencing: 'durable',
  ttl: { minMs: 50, stepMs: 1 },
  features: ['list', 'waiters', 'force-release', 'steal', 'many'],
} as const satisfies BackendCapabilities;

/** The type of the capabilities of the MySQL backend. */
export type MysqlCapabilities = typeof capabilities;

const LIST_PAGE = 64;
const LEAVE_LIMIT_MS = 1_000;

// setup: import { createLocks } from '@locks/core'; import { mysqlBackend } from '@locks/mysql'; import mysql from 'mysql2/promise';
// setup: declare function work(): Promise<void>;
/**
 * Locks in a table of MySQL (8.0 or later) or MariaDB (10.5 or later). The tables are made at the first call; constructing does
 * no I/O.
 *
 * @example
 * ```ts
 * const locks = createLocks(mysqlBackend({ pool: mysql.createPool('mysql://app@db/shop') }));
 * await locks.lock('nightly-report').run(work);
 * ```
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 */
export function mysqlBackend(options: MysqlBackendOptions): LockBackend<MysqlCapabilities> {
  return new MysqlBackend(checkOptions(options));
}

/** A statement that takes several names at once. */
interface TakenAtOnce {
  readonly answered: Promise<void>;
  /** Set once the names are no longer wanted. */
  isAbandoned: boolean;
}

class MysqlBackend implements LockBackend<MysqlCapabilities> {
  readonly spec = 'locks-backend/1';
  readonly name = 'mysql';
  readonly capabilities = capabilities;
  readonly #client = randomBytes(9).toString('base64url');
  readonly #ownPool: OwnPool | undefined;
  readonly #store: MysqlStore;
  readonly #writers: RowWriters;
  readonly #waiters: MysqlLocalWaiters;
  readonly #renewals: Renewals;
  readonly #sweeper: Sweeper;
  /** The statements that take several names at once, by acquisition id. */
  readonly #takenAtOnce = new Map<string, TakenAtOnce>();
  #closing: Promise<void> | undefined;

  constructor({ pool, uri, ...options }: CheckedMysqlOptions) {
    const own = uri === undefined ? undefined : new OwnPool(uri);
    this.#ownPool = own;
    const connections = new Connections(() => pool ?? (own as OwnPool).get(), options.statementTimeoutMs);
    const statements = new MysqlStatements(tablesOf(options.tablePrefix, options.database));
    this.#store = new MysqlStore(
      connections,
      statements,
      new Schema(connections, statements, options.createTables, options.statementTimeoutMs),
    );
    this.#writers = new RowWriters(this.#store, this.#client);
    this.#waiters = new MysqlLocalWaiters(this.#store, this.#writers, this.#client, options.maxPollMs);
    this.#writers.connect(this.#waiters);
    this.#renewals = new Renewals(this.#store, this.#writers);
    this.#sweeper = new Sweeper(this.#store, this.#writers);
    refuseAfterClose(this);
  }

  async attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    const { resource, acquisitionId } = request;
    const isWanted = (): boolean => this.#writers.get(resource)?.abandoned.has(acquisitionId) !== true;
    const attempted = this.#writers.submit<Attempt | QueueFullError>(
      resource,
      call,
      (decision, { sentAt }) => {
        if (!isWanted()) return { status: 'contended' };
        const attempted = decision.attempt(request, micros(request.ttlMs), enqueue);
        if ('isFull' in attempted) return new QueueFullError(decision.waiting, this.#store.packetBytes);
        if (attempted.status !== 'granted') return attempted;
        const grant = takenGrant(request, attempted.hold.token, sentAt);
        if (attempted.left === undefined) return { status: 'granted', grant };
        return { status: 'granted', grant: { ...grant, validForMs: attempted.left / 1_000 } };
      },
      (attempt, writer, sentAt) => {
        if (attempt instanceof QueueFullError) return;
        if (attempt.status === 'granted') {
          writer.own.add(acquisitionId);
          this.#waiters.left(request);
          this.#sweeper.wake();
        } else if (attempt.status === 'contended' && enqueue && isWanted()) {
          writer.own.add(acquisitionId);
          this.#waiters.enqueued(request, call, sentAt);
        }
      },
      {
        acquisitionId,
        run: async (sentAt, urgency) => {
          const taken = await this.#store.take(request, unhurried(call, urgency), isWanted);
          if (taken === undefined) return undefined;
          const grant = takenGrant(request, taken.token, sentAt);
          const row = takenRow(request, taken.version, taken.token);
          return { row, result: { status: 'granted', grant } };
        },
      },
      enqueue,
    );
    const writer = this.#writers.get(resource);
    writer?.attempting.add(acquisitionId);
    let attempt: Attempt | QueueFullError;
    try {
      attempt = await attempted;
    } catch (error) {
      // The acquisition may be in the queue now. It stays there until core attempts again (docs/spec.md §2.1), or is silent for
      // long.
      if (enqueue && writer?.abandoned.has(acquisitionId) !== true) this.#waiters.enqueued(request, call);
      throw error;
    } finally {
      writer?.attempting.delete(acquisitionId);
    }
    if (attempt instanceof QueueFullError) throw attempt;
    return attempt;
  }

  async attemptMany(requests: readonly AcquireRequest[], call: Call): Promise<readonly Grant[] | undefined> {
    const isWanted = (): boolean => !taken.isAbandoned && this.#closing === undefined;
    const taking = takeMany(this.#store, this.#writers, requests, call, isWanted);
    const taken: TakenAtOnce = { isAbandoned: false, answered: taking.then(ignore, ignore) };
    for (const { acquisitionId } of requests) this.#takenAtOnce.set(acquisitionId, taken);
    try {
      const grants = await taking;
      if (grants !== undefined) this.#sweeper.wake();
      return grants;
    } finally {
      for (const { acquisitionId } of requests) this.#takenAtOnce.delete(acquisitionId);
    }
  }

  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    return this.#waiters.awaitTurn(request, call);
  }

  async abandon(request: AcquireRequest, call: Call): Promise<void> {
    // The waiter leaves the local waiters first, whatever becomes of the write: the next poll clears entries that nobody waits
    // for.
    this.#waiters.left(request);
    const { resource, acquisitionId } = request;
    const taken = this.#takenAtOnce.get(acquisitionId);
    if (taken !== undefined) {
      // The statement is not sent any more. If it was sent already, the names that it takes can only be abandoned afterwards.
      taken.isAbandoned = true;
      await withTimeLimit(taken.answered, (call.deadline - call.now()) / 2, ignore);
    }
    const given = this.#writers.submit(
      resource,
      call,
      (decision) => {
        // An attempt that got no answer may have been written since the row was read.
        const isKnown = decision.holdOf(acquisitionId) !== undefined || decision.isQueued(acquisitionId);
        if (!isKnown) decision.needsFresh = true;
        decision.abandon(acquisitionId);
      },
      (_, writer) => {
        writer.own.delete(acquisitionId);
        this.#waiters.left(request);
      },
      undefined,
      false,
      PRIORITIES.abandon,
    );
    const writer = this.#writers.get(resource);
    writer?.abandoned.add(acquisitionId);
    await given.finally(() => writer?.abandoned.delete(acquisitionId));
  }

  renew(items: readonly RenewItem[], call: Call): Promise<readonly RenewalStatus[]> {
    return this.#renewals.renew(items, call);
  }

  release({ request }: Grant, call: Call): Promise<'released' | 'not-held' | 'unknown'> {
    const { acquisitionId } = request;
    return this.#writers.submit<'released' | 'not-held' | 'unknown'>(
      request.resource,
      call,
      (decision, { ambiguous }) => {
        if (decision.release(acquisitionId) !== undefined) return 'released';
        decision.needsFresh = true;
        return ambiguous ? 'unknown' : 'not-held';
      },
      (_, writer) => writer.own.delete(acquisitionId),
    );
  }

  downgrade({ request, fencingToken }: Grant, call: Call): Promise<RenewalStatus> {
    return this.#writers.submit<RenewalStatus>(request.resource, call, (decision) => {
      decision.needsFresh = true;
      return decision.downgrade(request.acquisitionId, Number(fencingToken));
    });
  }

  resize(resource: string, limit: number, call: Call): Promise<{ readonly status: 'set' } | Conflict> {
    return this.#writers.submit<{ readonly status: 'set' } | Conflict>(resource, call, (decision) => {
      decision.needsFresh = true;
      const conflict = decision.resize(limit);
      return conflict === undefined ? { status: 'set' } : { status: 'conflict', with: conflict };
    });
  }

  async inspect(resource: string, call: Call): Promise<ResourceState> {
    const snapshot = await this.#store.snapshot([resource], [], unhurried(call));
    return liveState(resource, snapshot.rows.get(resource), snapshot, this.#client);
  }

  async ping(call: Call): Promise<void> {
    await this.#store.read('SELECT 1', call);
  }

  async *list(prefix: string, call: Call): AsyncGenerator<ResourceState> {
    const { statements } = this.#store;
    let after: Buffer | undefined;
    for (;;) {
      const page = statements.page(Buffer.from(prefix), after, LIST_PAGE);
      const snapshot = statements.snapshot(await this.#store.read(page, unhurried(call)));
      for (const [resource, found] of snapshot.rows) {
        const state = liveState(resource, found, snapshot, this.#client);
        if (state.holders.length + state.waiters.length > 0) yield state;
        after = Buffer.from(resource);
      }
      if (snapshot.rows.size < LIST_PAGE) return;
    }
  }

  forceRelease(resource: string, expectedId: string | undefined, call: Call): Promise<readonly Holder[]> {
    return this.#writers.submit(resource, call, (decision) => {
      decision.needsFresh = true;
      return decision.forceRelease(expectedId).map((hold) => toHolder(hold, decision.now));
    });
  }

  isRetryable(error: unknown): boolean {
    return isRetryableError(error);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#waiters.close();
    this.#sweeper.stop();
    if (this.#waiters.hasBeaten) {
      const leave = this.#store.statements.leave(this.#client);
      // The write is a courtesy: without it other clients notice the end of this one by its silence.
      await this.#store.write(leave, ownLimit(LEAVE_LIMIT_MS)).catch(() => undefined);
    }
    await this.#ownPool?.end();
  }
}

function ignore(): void {
  // The error is ignored here: the caller of that statement gets it.
}
