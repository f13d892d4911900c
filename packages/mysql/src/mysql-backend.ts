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
  Standing,
} from '@locks/core/backend';
import { Connections } from './connections.ts';
import { Desks } from './desks.ts';
import type { Attempted } from './draft.ts';
import { isRetryableError } from './mysql-error.ts';
import { checkOptions, type CheckedOptions, type MysqlBackendOptions } from './options.ts';
import { OwnPool } from './own-pool.ts';
import { Renewals } from './renewals.ts';
import { Schema } from './schema.ts';
import { Statements } from './statements.ts';
import { Store } from './store.ts';
import { Sweeper } from './sweeper.ts';
import { tablesOf } from './tables.ts';
import { takeMany } from './take-many.ts';
import { takenGrant, takenState } from './taken.ts';
import { liveState, toHolder } from './views.ts';
import { WaitingLine } from './waiting-line.ts';

const capabilities = {
  tenure: 'lease',
  reach: 'network',
  modes: ['exclusive', 'shared', 'permit'],
  order: 'fifo',
  fencing: 'durable',
  ttl: { minMs: 50, stepMs: 1 },
  features: ['list', 'waiters', 'force-release', 'steal', 'many'],
} as const satisfies BackendCapabilities;

export type MysqlCapabilities = typeof capabilities;

const listPage = 64;
const goodbyeMs = 1_000;

/**
 * Locks in a table of MySQL (8.0 or later) or MariaDB (10.5 or later). The tables are made at the first call; constructing does
 * no I/O.
 *
 * @example
 * ```ts
 * const locks = createLocks(mysqlBackend({ pool: mysql.createPool(process.env.MYSQL_URL) }));
 * await locks.lock('nightly-report').run(work);
 * ```
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 */
export function mysqlBackend(options: MysqlBackendOptions): LockBackend<MysqlCapabilities> {
  return new MysqlBackend(checkOptions(options));
}

class MysqlBackend implements LockBackend<MysqlCapabilities> {
  readonly spec = 'locks-backend/1';
  readonly name = 'mysql';
  readonly capabilities = capabilities;
  readonly #client = randomBytes(9).toString('base64url');
  readonly #ownPool: OwnPool | undefined;
  readonly #store: Store;
  readonly #desks: Desks;
  readonly #line: WaitingLine;
  readonly #renewals: Renewals;
  readonly #sweeper: Sweeper;
  #closing: Promise<void> | undefined;

  constructor({ pool, uri, ...options }: CheckedOptions) {
    const own = uri === undefined ? undefined : new OwnPool(uri);
    this.#ownPool = own;
    const connections = new Connections(() => pool ?? (own as OwnPool).get(), options.statementTimeoutMs);
    const statements = new Statements(tablesOf(options.tablePrefix, options.database));
    this.#store = new Store(
      connections,
      statements,
      new Schema(connections, statements, options.createTables),
    );
    this.#desks = new Desks(this.#store, this.#client);
    this.#line = new WaitingLine(this.#store, this.#desks, this.#client, options.maxPollMs);
    this.#desks.serveLine(this.#line);
    this.#renewals = new Renewals(this.#store, this.#desks);
    this.#sweeper = new Sweeper(this.#store, this.#desks);
  }

  async attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    const { resource, acquisitionId } = request;
    const isWanted = (): boolean => this.#desks.get(resource)?.givenUp.has(acquisitionId) !== true;
    const attempted = this.#desks.submit<Attempt>(
      resource,
      call,
      (draft, { sentAt }) =>
        isWanted() ? attemptOf(draft.attempt(request, enqueue), request, sentAt) : { status: 'contended' },
      (attempt, desk) => {
        if (attempt.status === 'granted') {
          desk.own.add(acquisitionId);
          this.#line.left(request);
          this.#sweeper.wake();
        } else if (attempt.status === 'contended' && enqueue && isWanted()) {
          desk.own.add(acquisitionId);
          this.#line.enqueued(request);
        }
      },
      async (sentAt) => {
        const taken = await this.#store.take(request, call, isWanted);
        if (taken === undefined) return undefined;
        const grant = takenGrant(request, taken.token, sentAt);
        const state = takenState(request, taken.version, taken.token);
        return { state, result: { status: 'granted', grant } };
      },
      enqueue,
    );
    const desk = this.#desks.get(resource);
    desk?.attempting.add(acquisitionId);
    try {
      return await attempted;
    } catch (error) {
      // It may be in the queue now: its place is kept until core attempts again (docs/spec.md §2.1), or is silent for long.
      if (enqueue && desk?.givenUp.has(acquisitionId) !== true) this.#line.enqueued(request);
      throw error;
    } finally {
      desk?.attempting.delete(acquisitionId);
    }
  }

  async attemptMany(requests: readonly AcquireRequest[], call: Call): Promise<readonly Grant[] | undefined> {
    const grants = await takeMany(this.#store, this.#desks, requests, call);
    if (grants !== undefined) this.#sweeper.wake();
    return grants;
  }

  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    return this.#line.awaitTurn(request, call);
  }

  async abandon(request: AcquireRequest, call: Call): Promise<void> {
    // First here, whatever becomes of the write: what nobody waits for is cleared at the next look.
    this.#line.left(request);
    const { resource, acquisitionId } = request;
    const given = this.#desks.submit(
      resource,
      call,
      (draft) => {
        // It hangs on the state of now: an attempt that got no answer may have come in meanwhile.
        if (!draft.knows(acquisitionId)) draft.needsFresh = true;
        draft.abandon(acquisitionId);
      },
      (_, desk) => {
        desk.own.delete(acquisitionId);
        this.#line.left(request);
      },
    );
    const desk = this.#desks.get(resource);
    desk?.givenUp.add(acquisitionId);
    await given.finally(() => desk?.givenUp.delete(acquisitionId));
  }

  renew(items: readonly RenewItem[], call: Call): Promise<readonly Standing[]> {
    return this.#renewals.renew(items, call);
  }

  release({ request }: Grant, call: Call): Promise<'released' | 'not-held' | 'unknown'> {
    const { acquisitionId } = request;
    return this.#desks.submit<'released' | 'not-held' | 'unknown'>(
      request.resource,
      call,
      (draft, { ambiguous }) => {
        if (draft.release(acquisitionId)) return 'released';
        draft.needsFresh = true;
        return ambiguous ? 'unknown' : 'not-held';
      },
      (_, desk) => desk.own.delete(acquisitionId),
    );
  }

  downgrade({ request, fencingToken }: Grant, call: Call): Promise<Standing> {
    return this.#desks.submit<Standing>(request.resource, call, (draft) => {
      draft.needsFresh = true;
      return draft.downgrade(request.acquisitionId, Number(fencingToken));
    });
  }

  resize(resource: string, limit: number, call: Call): Promise<{ readonly status: 'set' } | Conflict> {
    return this.#desks.submit<{ readonly status: 'set' } | Conflict>(resource, call, (draft) => {
      draft.needsFresh = true;
      const conflict = draft.resize(limit);
      return conflict === undefined ? { status: 'set' } : { status: 'conflict', with: conflict };
    });
  }

  async inspect(resource: string, call: Call): Promise<ResourceState> {
    const snapshot = await this.#store.snapshot([resource], [], call);
    return liveState(resource, snapshot.states.get(resource), snapshot, this.#client);
  }

  async *list(prefix: string, call: Call): AsyncGenerator<ResourceState> {
    const { statements } = this.#store;
    let after: Buffer | undefined;
    for (;;) {
      const page = statements.page(Buffer.from(prefix), after, listPage);
      const snapshot = statements.snapshot(await this.#store.read(page, call));
      for (const [resource, found] of snapshot.states) {
        const state = liveState(resource, found, snapshot, this.#client);
        if (state.holders.length + state.waiters.length > 0) yield state;
        after = Buffer.from(resource);
      }
      if (snapshot.states.size < listPage) return;
    }
  }

  forceRelease(resource: string, expectedId: string | undefined, call: Call): Promise<readonly Holder[]> {
    return this.#desks.submit(resource, call, (draft) => {
      draft.needsFresh = true;
      return draft.forceRelease(expectedId).map((hold) => toHolder(hold, draft.now));
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
    this.#line.close();
    this.#sweeper.stop();
    if (this.#line.hasBeaten) {
      const now = (): number => performance.now();
      const goodbye = this.#store.statements.leave(this.#client);
      // A courtesy: without it others find out by the silence.
      await this.#store.write(goodbye, { now, deadline: now() + goodbyeMs }).catch(() => undefined);
    }
    await this.#ownPool?.end();
  }
}

function attemptOf(attempted: Attempted, request: AcquireRequest, sentAt: number): Attempt {
  switch (attempted.status) {
    case 'granted': {
      const grant = takenGrant(request, attempted.hold.token, sentAt);
      if (attempted.left === undefined) return { status: 'granted', grant };
      return { status: 'granted', grant: { ...grant, validForMs: attempted.left / 1_000 } };
    }
    case 'contended':
      return { status: 'contended' };
    case 'conflict':
      return { status: 'conflict', with: attempted.with };
    default:
      return attempted satisfies never;
  }
}
