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
import { guardPool, openPlace } from '../pool/place.ts';
import { isRetryablePostgresError } from '../pool/retryable.ts';
import { type Answer, Statements } from '../pool/statements.ts';
import { inspectResource, listResources } from './inspection.ts';
import { modeColumns, toMode } from './modes.ts';
import { type CheckedOptions, checkOptions, type PostgresLeaseOptions } from './options.ts';
import { type HandOver, parseAttempt, parseHandOvers, splitServed, toHolder, toStanding } from './replies.ts';
import { nameBytes } from './name-bytes.ts';
import { ensureSchema } from './schema.ts';
import { leaseSql, type LeaseSql } from './sql.ts';
import { isUncontended, Uncontended } from './uncontended.ts';
import { WaitingRoom } from './waiting-room.ts';

const capabilities = {
  tenure: 'lease',
  reach: 'network',
  modes: ['exclusive', 'shared', 'permit'],
  order: 'fifo',
  fencing: 'durable',
  ttl: { minMs: 20, stepMs: 1 },
  features: ['list', 'waiters', 'force-release', 'steal', 'many'],
} as const satisfies BackendCapabilities;

export type PostgresLeaseCapabilities = typeof capabilities;

/** The ways of an attempt, as in migrations/1/10-acquire.sql. */
const single = 0;
const enqueues = 1;
const steals = 2;

/** How often a process that uses locks has what nobody asks for any more cleared. */
const SWEEP_MS = 60_000;
const FIND_SCHEMA_MS = 10_000;

/**
 * Locks as rows of a PostgreSQL database, which end by its clock. The schema is created by the first call.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 * @example
 * ```ts
 * const locks = createLocks(postgresLeaseBackend({ pool }));
 * await locks.lock('nightly-report').run(work);
 * ```
 */
export function postgresLeaseBackend(options: PostgresLeaseOptions): LockBackend<PostgresLeaseCapabilities> {
  return new PostgresLeaseBackend(checkOptions(options));
}

class PostgresLeaseBackend implements LockBackend<PostgresLeaseCapabilities> {
  readonly spec = 'locks-backend/1';
  readonly name = 'postgres-lease';
  readonly capabilities = capabilities;
  readonly #statements: Statements;
  readonly #ownsPool: boolean;
  readonly #unguardPool: () => void;
  readonly #room: WaitingRoom;
  readonly #sql: LeaseSql;
  readonly #uncontended: Uncontended;
  readonly #options: CheckedOptions;
  #schema: Promise<void> | undefined;
  #schemaFound = false;
  #sweepAt = performance.now() + SWEEP_MS;

  constructor(options: CheckedOptions) {
    const { pool, own } = openPlace(options.place);
    this.#options = options;
    this.#ownsPool = own;
    this.#statements = new Statements(pool);
    this.#sql = leaseSql(options.schema);
    this.#uncontended = new Uncontended(this.#statements, options.schema);
    this.#room = new WaitingRoom(this.#statements, pool, options);
    this.#unguardPool = guardPool(pool);
  }

  async attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    const name = nameBytes(request.resource);
    // What was aborted before it is sent must not come in after its own abandon, on another connection.
    const givenUp = (): boolean => call.signal?.aborted === true;
    if (this.#mayBeUncontended(request)) {
      const grant = await this.#watched(this.#uncontended.attempt(request, name, call, givenUp));
      if (grant !== undefined) return { status: 'granted', grant };
    }
    const { acquisitionId, label, ttlMs } = request;
    const { kind, weight, permits } = modeColumns(request.mode);
    const way = request.steal ? steals : enqueue ? enqueues : single;
    if (way === enqueues) this.#room.enter(request, call);
    const values = [name, acquisitionId, kind, weight, permits, ttlMs, label, this.#room.client, way];
    const { first, sentAt } = await this.#serving(this.#sql.acquire, values, call, givenUp);
    const reply = parseAttempt(first);
    this.#room.answered(acquisitionId, reply, sentAt);
    switch (reply.status) {
      case 'granted':
        return { status: 'granted', grant: toGrant(request, reply.token, sentAt, reply.ms) };
      case 'queued':
        return { status: 'contended' };
      case 'conflict':
        return reply;
      default:
        return reply satisfies never;
    }
  }

  async attemptMany(requests: readonly AcquireRequest[], call: Call): Promise<readonly Grant[] | undefined> {
    const modes = requests.map(({ mode }) => modeColumns(mode));
    const values = [
      requests.map(({ resource }) => nameBytes(resource)),
      requests.map(({ acquisitionId }) => acquisitionId),
      modes.map(({ kind }) => kind),
      modes.map(({ weight }) => weight),
      modes.map(({ permits }) => permits),
      requests.map(({ ttlMs }) => ttlMs),
      requests.map(({ label }) => label ?? null),
      this.#room.client,
    ];
    const { rows, sentAt } = await this.#run(this.#sql.acquireMany, values, call);
    const reply = rows[0]?.[0];
    if (reply === null || reply === undefined) return undefined;
    const lines = reply.split('\n');
    this.#handOver(parseHandOvers(lines.slice(requests.length).join('\n')), () => call.now() - sentAt);
    return requests.map((request, at) => {
      const granted = parseAttempt(lines[at] as string);
      if (granted.status !== 'granted') throw new Error(`acquire_many gave ${granted.status}`);
      return toGrant(request, granted.token, sentAt, granted.ms);
    });
  }

  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    return this.#room.awaitTurn(request, call);
  }

  async abandon({ resource, acquisitionId }: AcquireRequest, call: Call): Promise<void> {
    this.#room.leave(acquisitionId);
    await this.#serving(this.#sql.abandon, [nameBytes(resource), acquisitionId, this.#room.client], call);
    // An attempt that was still under way may have come in before the statement.
    this.#room.leave(acquisitionId);
  }

  async renew(items: readonly RenewItem[], call: Call): Promise<readonly Standing[]> {
    const requests = items.map(({ grant }) => grant.request);
    const values = [
      requests.map(({ resource }) => nameBytes(resource)),
      requests.map(({ acquisitionId }) => acquisitionId),
      items.map(({ grant }) => String(grant.fencingToken)),
      items.map(({ ttlMs }) => ttlMs),
    ];
    const { rows } = await this.#run(this.#sql.renew, values, call);
    return (rows[0]?.[0] ?? '').split('').map(toStanding);
  }

  async release(grant: Grant, call: Call): Promise<'released' | 'not-held'> {
    const { resource, acquisitionId } = grant.request;
    const name = nameBytes(resource);
    if (isUncontended(grant) && this.#mayBeUncontended(grant.request)) {
      if (await this.#watched(this.#uncontended.release(grant, name, call))) return 'released';
    }
    const { first } = await this.#serving(this.#sql.release, [name, acquisitionId, this.#room.client], call);
    return first === 'r' ? 'released' : 'not-held';
  }

  async downgrade({ request, fencingToken }: Grant, call: Call): Promise<Standing> {
    const values = [
      nameBytes(request.resource),
      request.acquisitionId,
      String(fencingToken),
      this.#room.client,
    ];
    const { first } = await this.#serving(this.#sql.downgrade, values, call);
    const [letter = '', ms] = first.split(' ');
    return letter === 'h' ? { status: 'held', validForMs: Number(ms) } : toStanding(letter);
  }

  async resize(resource: string, limit: number, call: Call): Promise<{ readonly status: 'set' } | Conflict> {
    const { first } = await this.#serving(
      this.#sql.resize,
      [nameBytes(resource), limit, this.#room.client],
      call,
    );
    const [letter, kind, weight, permits] = first.split(' ');
    return letter === 'c' ? { status: 'conflict', with: toMode(kind, weight, permits) } : { status: 'set' };
  }

  inspect(resource: string, call: Call): Promise<ResourceState> {
    return inspectResource((sql, values) => this.#run(sql, values, call), this.#sql, resource);
  }

  list(prefix: string, call: Call): AsyncGenerator<ResourceState> {
    return listResources((sql, values) => this.#run(sql, values, call), this.#sql, prefix);
  }

  async forceRelease(
    resource: string,
    expectedId: string | undefined,
    call: Call,
  ): Promise<readonly Holder[]> {
    const values = [nameBytes(resource), expectedId ?? null, this.#room.client];
    const { rows, sentAt } = await this.#run(this.#sql.forceRelease, values, call);
    const served = rows.find(([, role]) => role === 's');
    this.#handOver(parseHandOvers(served?.[2] ?? ''), () => call.now() - sentAt);
    return rows.filter(([, role]) => role === 'h').map(toHolder);
  }

  isRetryable(error: unknown): boolean {
    return isRetryablePostgresError(error);
  }

  async close(): Promise<void> {
    this.#room.close();
    if (this.#ownsPool && !this.#statements.pool.ending) await this.#statements.pool.end();
    this.#unguardPool();
  }

  /** Whether the plain statements are worth a try: prepared, and nobody waits here for the same name. */
  #mayBeUncontended({ mode, steal, resource }: AcquireRequest): boolean {
    return (
      mode.kind === 'exclusive' &&
      steal !== true &&
      this.#schemaFound &&
      this.#statements.prepare &&
      !this.#room.waitsFor(resource)
    );
  }

  /** A statement whose reply may also tell of waiters of this backend whose turn has come. */
  async #serving(
    sql: string,
    values: unknown[],
    call: Call,
    givenUp?: () => boolean,
  ): Promise<{ first: string; sentAt: number }> {
    const { rows, sentAt } = await this.#run(sql, values, call, givenUp);
    const reply = splitServed(rows[0]?.[0] ?? '');
    this.#handOver(reply.handOvers, () => call.now() - sentAt);
    return { first: reply.first, sentAt };
  }

  #handOver(handOvers: readonly HandOver[], ageMs: () => number): void {
    for (const handOver of handOvers) this.#room.handOver(handOver, ageMs);
  }

  async #run(sql: string, values: unknown[], call: Call, givenUp?: () => boolean): Promise<Answer> {
    if (!this.#schemaFound) await this.#findSchema();
    return await this.#watched(this.#statements.run(sql, values, call, givenUp));
  }

  async #watched<T>(answer: Promise<T>): Promise<T> {
    if (performance.now() > this.#sweepAt) this.#sweep();
    try {
      return await answer;
    } catch (error) {
      // Dropped, or another database by now: the next call looks again.
      if (isMissing(error)) this.#schemaFound = false;
      throw error;
    }
  }

  async #findSchema(): Promise<void> {
    const { schema, migrate } = this.#options;
    // For all who ask meanwhile, so none of their deadlines.
    const now = (): number => performance.now();
    const patience = { now, deadline: now() + FIND_SCHEMA_MS };
    this.#schema ??= ensureSchema(this.#statements, schema, migrate, patience).finally(() => {
      this.#schema = undefined;
    });
    await this.#schema;
    this.#schemaFound = true;
  }

  #sweep(): void {
    const now = (): number => performance.now();
    this.#sweepAt = now() + SWEEP_MS;
    this.#statements.run(this.#sql.sweep, [], { now, deadline: this.#sweepAt }).catch(ignore);
  }
}

function toGrant(
  request: AcquireRequest,
  fencingToken: bigint,
  countedFrom: number,
  ms: number | undefined,
): Grant {
  return ms === undefined
    ? { request, fencingToken, countedFrom }
    : // Granted by an earlier sending, or handed over: what is left of that lease.
      { request, fencingToken, countedFrom, validForMs: ms };
}

/** No such schema, table or function. */
function isMissing(error: unknown): boolean {
  const { code } = error as { code?: unknown };
  return code === '3F000' || code === '42P01' || code === '42883';
}

function ignore(): void {
  // The next sweep tries again.
}
