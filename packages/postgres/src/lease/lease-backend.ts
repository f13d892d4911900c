import type {
  AcquireRequest,
  Attempt,
  BackendCapabilities,
  Call,
  Conflict,
  Grant,
  Holder,
  InspectOptions,
  LockBackend,
  RenewItem,
  ResourceState,
  RenewalStatus,
} from '@locks/core/backend';
import { PRIORITIES, refuseAfterClose } from '@locks/core/backend';
import type { PostgresDriver, Value } from '../driver/postgres-driver.ts';
import { PostgresStatements, type StatementResult } from '../driver/postgres-statements.ts';
import { isRetryablePostgresError } from '../driver/retryable.ts';
import { AttemptQueues } from './attempt-queues.ts';
import { inspectResource, listResources } from './inspection.ts';
import type { LeaseSql } from './lease-sql.ts';
import { LeaseStatements } from './lease-statements.ts';
import { NotifiedWaiters } from './notified-waiters.ts';
import { acquireColumns, toMode } from './modes.ts';
import { nameBytes } from './name-bytes.ts';
import type { CheckedLeaseOptions } from './options.ts';
import { parseAttempt, parseHandOffs, parseServed, toGrant, toHolder, toRenewalStatus } from './replies.ts';
import { ReleaseBatches } from './release-batches.ts';
import { prepareSchema } from './schema.ts';

const COMMON = {
  tenure: 'lease',
  modes: ['exclusive', 'shared', 'permit'],
  order: 'fifo',
  fencing: 'durable',
  ttl: { minMs: 20, stepMs: 1 },
  features: ['list', 'waiters', 'force-release', 'steal', 'transfer', 'max-waiters', 'many'],
} as const satisfies Omit<BackendCapabilities, 'reach' | 'renewal'>;

/** The type of the capabilities of the backend on a lease table. `process`: the database is part of the process. */
export type PostgresLeaseCapabilities<Reach extends 'network' | 'process' = 'network'> = typeof COMMON & {
  /** All clients of the database share the locks. */
  readonly reach: Reach;
  /** Any client of the database renews a hold, unless the database is part of the process. */
  readonly renewal: Reach extends 'process' ? 'own-client' : 'any-client';
};

/** Leases in a table, on any driver. */
export class PostgresLeaseBackend<Reach extends 'network' | 'process'>
  implements LockBackend<PostgresLeaseCapabilities<Reach>>
{
  readonly spec = 'locks-backend/1';
  readonly name = 'postgres-lease';
  readonly capabilities: PostgresLeaseCapabilities<Reach>;
  readonly isClientClosed?: (() => boolean) | undefined;
  readonly #pool: PostgresStatements;
  readonly #waiters: NotifiedWaiters;
  readonly #statements: LeaseStatements;
  readonly #sql: LeaseSql;
  readonly #settings: CheckedLeaseOptions;
  readonly #attempts: AttemptQueues;
  readonly #releases: ReleaseBatches;
  readonly #abandons: ReleaseBatches;

  constructor(driver: PostgresDriver, settings: CheckedLeaseOptions, reach: Reach) {
    const renewal = reach === 'process' ? 'own-client' : 'any-client';
    this.capabilities = { ...COMMON, reach, renewal } as PostgresLeaseCapabilities<Reach>;
    this.isClientClosed = driver.isClientClosed?.bind(driver);
    this.#settings = settings;
    this.#pool = new PostgresStatements(driver);
    this.#statements = new LeaseStatements(this.#pool, settings);
    this.#sql = this.#statements.sql;
    this.#waiters = new NotifiedWaiters(this.#pool, settings, (request, call) => {
      this.#abandons.abandon(request, call).catch(ignore);
    });
    this.#attempts = new AttemptQueues(this.#statements, this.#waiters);
    this.#releases = new ReleaseBatches('release', this.#statements, this.#waiters);
    this.#abandons = new ReleaseBatches('abandon', this.#statements, this.#waiters);
    refuseAfterClose(this);
  }

  attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    const { adopts } = request;
    if (adopts !== undefined) return this.#adopt(request, adopts, call);
    return this.#attempts.attempt(request, enqueue, call);
  }

  async #adopt(request: AcquireRequest, adopts: string, call: Call): Promise<Attempt> {
    const { resource, acquisitionId, ttlMs, label } = request;
    const values = [nameBytes(resource), acquisitionId, adopts, ttlMs, label];
    const { rows, sentAt } = await this.#statements.run(this.#sql.adopt, values, call, PRIORITIES.acquire);
    const reply = parseAttempt(rows[0]?.[0] ?? '');
    if (reply.status !== 'granted') return { status: 'contended' };
    return { status: 'granted', grant: toGrant(request, reply, sentAt) };
  }

  async attemptMany(requests: readonly AcquireRequest[], call: Call): Promise<readonly Grant[] | undefined> {
    const names = requests.map(({ resource }) => nameBytes(resource));
    const values = [names, ...acquireColumns(requests), this.#waiters.client];
    const { rows, sentAt } = await this.#statements.runWanted(
      this.#sql.acquireMany,
      values,
      call,
      PRIORITIES.acquire,
    );
    const reply = rows[0]?.[0];
    if (reply === null || reply === undefined) return undefined;
    const lines = reply.split('\n');
    const handOffs = parseHandOffs(lines.slice(requests.length).join('\n'));
    this.#waiters.handOffAll(handOffs, () => call.now() - sentAt);
    return requests.map((request, at) => {
      const granted = parseAttempt(lines[at] as string);
      if (granted.status !== 'granted') throw new Error(`acquire_many gave ${granted.status}`);
      return toGrant(request, granted, sentAt);
    });
  }

  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    return this.#waiters.awaitTurn(request, call);
  }

  async abandon(request: AcquireRequest, call: Call): Promise<void> {
    if (this.#attempts.withdraw(request)) return;
    this.#waiters.giveUp(request, call);
    await this.#abandons.abandon(request, call);
    this.#waiters.abandoned(request.acquisitionId);
  }

  async renew(items: readonly RenewItem[], call: Call): Promise<readonly RenewalStatus[]> {
    const requests = items.map(({ grant }) => grant.request);
    const values = [
      requests.map(({ resource }) => nameBytes(resource)),
      requests.map(({ acquisitionId }) => acquisitionId),
      items.map(({ grant }) => String(grant.fencingToken)),
      items.map(({ ttlMs }) => ttlMs),
    ];
    const { rows } = await this.#statements.run(this.#sql.renew, values, call, PRIORITIES.holder);
    return (rows[0]?.[0] ?? '').split('').map(toRenewalStatus);
  }

  async release(grant: Grant, call: Call): Promise<'released' | 'not-held'> {
    return (await this.#releases.release(grant, call)) ? 'released' : 'not-held';
  }

  async downgrade({ request, fencingToken }: Grant, call: Call): Promise<RenewalStatus> {
    const { resource, acquisitionId } = request;
    const values = [nameBytes(resource), acquisitionId, String(fencingToken), this.#waiters.client];
    const first = await this.#serving(this.#sql.downgrade, values, call);
    const [letter = '', ms] = first.split(' ');
    return letter === 'h' ? { status: 'held', validForMs: Number(ms) } : toRenewalStatus(letter);
  }

  async resize(resource: string, limit: number, call: Call): Promise<{ readonly status: 'set' } | Conflict> {
    const values = [nameBytes(resource), limit, this.#waiters.client];
    const first = await this.#serving(this.#sql.resize, values, call);
    const [letter, kind, weight, permits] = first.split(' ');
    return letter === 'c' ? { status: 'conflict', with: toMode(kind, weight, permits) } : { status: 'set' };
  }

  inspect(resource: string, call: Call, options?: InspectOptions): Promise<ResourceState> {
    return inspectResource(this.#asking(call), this.#sql, resource, options);
  }

  async ping(call: Call): Promise<void> {
    await this.#statements.run('SELECT 1', [], call, PRIORITIES.holder);
  }

  list(prefix: string, call: Call): AsyncGenerator<ResourceState> {
    return listResources(this.#asking(call), this.#sql, prefix);
  }

  async forceRelease(
    resource: string,
    expectedId: string | undefined,
    call: Call,
  ): Promise<readonly Holder[]> {
    const values = [nameBytes(resource), expectedId ?? null, this.#waiters.client];
    const { rows, sentAt } = await this.#statements.run(
      this.#sql.forceRelease,
      values,
      call,
      PRIORITIES.holder,
    );
    const served = rows.find(([, role]) => role === 's');
    this.#waiters.handOffAll(parseHandOffs(served?.[2] ?? ''), () => call.now() - sentAt);
    return rows.filter(([, role]) => role === 'h').map(toHolder);
  }

  async prepare({ signal }: Call): Promise<void> {
    await prepareSchema(this.#pool.driver, this.#settings.schema, signal);
  }

  connectionError(request?: AcquireRequest): Error | undefined {
    // A waiter in the queue of the store needs no connection of the pool.
    const isUnsent = request === undefined || this.#attempts.isUnsent(request);
    return isUnsent ? this.#pool.shortage : undefined;
  }

  isRetryable(error: unknown): boolean {
    return isRetryablePostgresError(error);
  }

  async close(): Promise<void> {
    this.#waiters.close();
    await this.#pool.close();
  }

  /** Runs a step whose reply may contain hand-offs to waiters of this backend. Returns the reply's first line. */
  async #serving(sql: string, values: readonly Value[], call: Call): Promise<string> {
    const { rows, sentAt } = await this.#statements.run(sql, values, call, PRIORITIES.holder);
    const { first, handOffs } = parseServed(rows[0]?.[0] ?? '');
    this.#waiters.handOffAll(handOffs, () => call.now() - sentAt);
    return first;
  }

  #asking(call: Call): (sql: string, values: readonly Value[]) => Promise<StatementResult> {
    return (sql, values) => this.#statements.run(sql, values, call, PRIORITIES.acquire);
  }
}

function ignore(): void {
  // A hold that could not be abandoned ends by its ttl.
}
