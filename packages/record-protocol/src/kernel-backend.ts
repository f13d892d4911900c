// One file: the methods of the contract. What has a thought of its own stands beside it.
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
import { liveState, toHolder } from './live-state.ts';
import { type LockTable, type Snapshot, takenGrant } from './lock-table.ts';
import { RecordWaiters } from './record-waiters.ts';
import { Renewals } from './renewals.ts';
import { micros } from './row-decision.ts';
import { RowsInUse } from './rows-in-use.ts';
import { SpentTokensError } from './spent-tokens-error.ts';
import { Sweeper } from './sweeper.ts';
import { takeMany } from './take-many.ts';
import { ownLimit, unhurried } from './time-limit.ts';

const LEAVE_LIMIT_MS = 500;

/** Makes a backend out of a table, with the capabilities that the table has. */
export function createTableBackend<C extends BackendCapabilities>(
  table: LockTable,
  capabilities: C,
): LockBackend<C> {
  return new KernelBackend(table, capabilities);
}

/** A request that takes several names at once. */
interface TakenAtOnce {
  readonly answered: Promise<void>;
  /** Set once the names are no longer wanted. */
  isAbandoned: boolean;
}

/** What core calls. One file, since each method is little more than the step of the rules that it submits. */
class KernelBackend<C extends BackendCapabilities> implements LockBackend<C> {
  readonly spec = 'locks-backend/1';
  readonly name: string;
  readonly capabilities: C;
  readonly isClientClosed?: (() => boolean) | undefined;
  readonly releaseBudgetMs: number;
  readonly attemptMany?: LockBackend['attemptMany'];
  readonly list?: LockBackend['list'];
  readonly prepare?: LockBackend['prepare'];
  readonly #client = randomBytes(9).toString('base64url');
  readonly #table: LockTable;
  readonly #rows: RowsInUse;
  readonly #waiters: RecordWaiters;
  readonly #renewals: Renewals;
  readonly #sweeper: Sweeper;
  /** The requests that take several names at once, by acquisition id. */
  readonly #takenAtOnce = new Map<string, TakenAtOnce>();
  #closing: Promise<void> | undefined;

  constructor(table: LockTable, capabilities: C) {
    this.name = table.name;
    this.capabilities = capabilities;
    this.releaseBudgetMs = table.releaseBudgetMs;
    this.isClientClosed = table.isClientClosed?.bind(table);
    this.#table = table;
    this.#rows = new RowsInUse(table, this.#client);
    this.#waiters = new RecordWaiters(table, this.#rows, this.#client);
    this.#rows.connect(this.#waiters);
    this.#renewals = new Renewals(table, this.#rows);
    this.#sweeper = new Sweeper(table, this.#rows);
    if (table.takeMany !== undefined)
      this.attemptMany = (requests, call) => this.#attemptMany(requests, call);
    if (table.list !== undefined) this.list = (prefix, call) => this.#list(prefix, call);
    if (table.prepare !== undefined) this.prepare = table.prepare.bind(table);
    refuseAfterClose(this);
  }

  async attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    const { resource, acquisitionId } = request;
    const isWanted = (): boolean => this.#rows.get(resource)?.abandoned.has(acquisitionId) !== true;
    const attempted = this.#rows.submit<Attempt | SpentTokensError>(
      resource,
      call,
      (decision, { sentAt }) => {
        if (!isWanted()) return { status: 'contended' };
        if (decision.hasNoToken && decision.holdOf(acquisitionId) === undefined)
          return new SpentTokensError(decision.token);
        const attempted = decision.attempt(request, micros(request.ttlMs), enqueue);
        if (attempted.status === 'full' && attempted.reason === 'recordHasNoRoom')
          return { status: 'full', because: this.#withoutRoom(decision.waiting) };
        if (attempted.status !== 'granted') return attempted;
        const grant = takenGrant(request, attempted.hold.token, sentAt);
        if (attempted.left === undefined) return { status: 'granted', grant };
        return {
          status: 'granted',
          grant: { ...grant, validForMs: this.#validForMs(request, attempted.left) },
        };
      },
      {
        finish: (attempt, writer, sentAt) => {
          if (attempt instanceof Error) return;
          if (attempt.status === 'granted') {
            writer.own.add(acquisitionId);
            this.#waiters.left(request);
            this.#sweeper.wake();
          } else if (attempt.status === 'contended' && enqueue && isWanted()) {
            writer.own.add(acquisitionId);
            this.#waiters.enqueued(request, call, sentAt);
          }
        },
        // A hold that is adopted is there, or the answer is no.
        take:
          request.adopts === undefined
            ? {
                request,
                isWanted,
                granted: (token, sentAt) => ({
                  status: 'granted',
                  grant: takenGrant(request, token, sentAt),
                }),
              }
            : undefined,
        enqueues: enqueue,
      },
    );
    const writer = this.#rows.get(resource);
    writer?.attempting.add(acquisitionId);
    let attempt: Attempt | SpentTokensError;
    try {
      attempt = await attempted;
    } catch (error) {
      // The acquisition may be in the queue now. It stays there until core attempts again (docs/spec.md §2.1), or is silent for
      // long.
      if (enqueue && writer?.abandoned.has(acquisitionId) !== true)
        this.#waiters.enqueued(request, call, undefined);
      throw error;
    } finally {
      writer?.attempting.delete(acquisitionId);
    }
    if (attempt instanceof Error) throw attempt;
    return attempt;
  }

  #withoutRoom(waiting: number): string {
    return `${waiting} wait: one more does not fit into its record, which is bounded by ${this.#table.stateBound}`;
  }

  /**
   * The time for which a hold that is found again may still be believed in. A holder believes in 99 % of its ttl, since its clock may be
   * the slower one: where that clock has measured what passed, it takes its share of the other 1 % along.
   */
  #validForMs({ ttlMs }: AcquireRequest, left: number): number {
    const passed = this.#table.now === undefined ? 0 : Math.max(0, micros(ttlMs) - left);
    return (left - passed / 99) / 1_000;
  }

  async #attemptMany(requests: readonly AcquireRequest[], call: Call): Promise<readonly Grant[] | undefined> {
    const isWanted = (): boolean => !taken.isAbandoned && this.#closing === undefined;
    const taking = takeMany(this.#table, this.#rows, requests, call, isWanted);
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
    const given = this.#rows.submit(
      resource,
      call,
      (decision) => {
        // An attempt that got no answer may have been written since the row was read.
        const isKnown = decision.holdOf(acquisitionId) !== undefined || decision.isQueued(acquisitionId);
        if (!isKnown) decision.needsFresh = true;
        decision.abandon(acquisitionId);
      },
      {
        finish: (_, writer) => {
          writer.own.delete(acquisitionId);
          this.#waiters.left(request);
        },
        priority: PRIORITIES.abandon,
      },
    );
    const writer = this.#rows.get(resource);
    writer?.abandoned.add(acquisitionId);
    await given.finally(() => writer?.abandoned.delete(acquisitionId));
  }

  renew(items: readonly RenewItem[], call: Call): Promise<readonly RenewalStatus[]> {
    return this.#renewals.renew(items, call);
  }

  release({ request }: Grant, call: Call): Promise<'released' | 'not-held' | 'unknown'> {
    const { acquisitionId } = request;
    return this.#rows.submit<'released' | 'not-held' | 'unknown'>(
      request.resource,
      call,
      (decision, { ambiguous }) => {
        if (decision.release(acquisitionId) !== undefined) return 'released';
        decision.needsFresh = true;
        return ambiguous ? 'unknown' : 'not-held';
      },
      { finish: (_, writer) => void writer.own.delete(acquisitionId) },
    );
  }

  downgrade({ request, fencingToken }: Grant, call: Call): Promise<RenewalStatus> {
    return this.#rows.submit<RenewalStatus>(request.resource, call, (decision) => {
      decision.needsFresh = true;
      return decision.downgrade(request.acquisitionId, Number(fencingToken));
    });
  }

  resize(resource: string, limit: number, call: Call): Promise<{ readonly status: 'set' } | Conflict> {
    return this.#rows.submit<{ readonly status: 'set' } | Conflict>(resource, call, (decision) => {
      decision.needsFresh = true;
      const conflict = decision.resize(limit);
      return conflict === undefined ? { status: 'set' } : { status: 'conflict', with: conflict };
    });
  }

  async inspect(resource: string, call: Call): Promise<ResourceState> {
    const limit = unhurried(call);
    const snapshot = await this.#table.snapshot([resource], [], limit);
    await this.#table.lookAt?.(resource, 'next', limit);
    return this.#liveState(resource, snapshot);
  }

  async ping(call: Call): Promise<void> {
    await this.#table.ping(call);
  }

  async *#list(prefix: string, call: Call): AsyncGenerator<ResourceState> {
    const pages = this.#table.list?.(prefix, unhurried(call)) ?? [];
    for await (const page of pages) {
      for (const [resource, row] of page.rows) {
        // One record that something else has written does not hide the others.
        if (!resource.startsWith(prefix) || row?.malformed !== undefined) continue;
        const state = this.#liveState(resource, page);
        if (state.holders.length + state.waiters.length > 0) yield state;
      }
    }
  }

  forceRelease(resource: string, expectedId: string | undefined, call: Call): Promise<readonly Holder[]> {
    return this.#rows.submit(resource, call, (decision) => {
      decision.needsFresh = true;
      return decision.forceRelease(expectedId).map((hold) => toHolder(hold, decision.now));
    });
  }

  isRetryable(error: unknown): boolean {
    return this.#table.isRetryable(error);
  }

  connectionError(): unknown {
    return this.#table.connectionError?.();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#waiters.close();
    this.#sweeper.stop();
    if (this.#waiters.hasBeaten) {
      // The request is a courtesy: without it other clients notice the end of this one by its silence.
      const leaving = this.#table.leave(this.#client, ownLimit(LEAVE_LIMIT_MS));
      await withTimeLimit(leaving.catch(ignore), LEAVE_LIMIT_MS, ignore);
    }
    await this.#table.close();
  }

  #liveState(resource: string, { rows, now, alive }: Snapshot): ResourceState {
    const row = rows.get(resource);
    if (row?.malformed !== undefined) throw row.malformed;
    return liveState(resource, row, { now: this.#table.now?.() ?? now, alive }, this.#client);
  }
}

function ignore(): void {
  // The error is ignored here: the caller of that statement gets it.
}
