import { LockError } from '@locks/core';
import type {
  AcquireRequest,
  Attempt,
  Call,
  Grant,
  Holder,
  LockBackend,
  RenewItem,
  ResourceState,
  RenewalStatus,
} from '@locks/core/backend';
import { refuseAfterClose } from '@locks/core/backend';
import type { OpeningDriver, OwnConnection } from '../driver/postgres-driver.ts';
import { isRetryablePostgresError } from '../driver/retryable.ts';
import { advisoryKey } from './advisory-key.ts';
import { AdvisorySessions } from './advisory-sessions.ts';
import type { CheckedAdvisoryOptions } from './options.ts';
import { ParkedPoll } from './parked-poll.ts';
import { PeerQuery } from './peer-query.ts';
import { ResourceQueue } from './resource-queue.ts';
import { ServerLock } from './server-lock.ts';
import { StandbyError } from './session-setup.ts';
import { SessionEndedError } from './session-statement.ts';

/** The capabilities of the advisory backend; `fencing` as it was configured. */
export interface PostgresAdvisoryCapabilities<Fencing extends 'durable' | 'none' = 'durable' | 'none'> {
  /** A hold ends with the session that took it. */
  readonly tenure: 'session';
  /** The session that took a hold keeps it. */
  readonly renewal: 'own-client';
  /** All clients of the database share the locks. */
  readonly reach: 'network';
  /** PostgreSQL has no lock with permits. */
  readonly modes: readonly ['exclusive', 'shared'];
  /** The server's own queue. */
  readonly order: 'fifo';
  /** `durable` with the option `fencing`. */
  readonly fencing: Fencing;
  /** The bounds of a ttl in milliseconds. A ttl ends nothing, since holds end with their session. */
  readonly ttl: { readonly minMs: 1; readonly stepMs: 1 };
  /** A name cannot be recovered from its key: there is no `list`. */
  readonly features: readonly ['waiters', 'force-release'];
}

/** Advisory locks, on any driver with connections beside its pool. */
export class AdvisoryBackend implements LockBackend<PostgresAdvisoryCapabilities> {
  readonly spec = 'locks-backend/1';
  readonly name = 'postgres-advisory';
  readonly capabilities: PostgresAdvisoryCapabilities;
  readonly #driver: OpeningDriver;
  readonly #sessionTimeoutMs: number;
  readonly #sessions: AdvisorySessions;
  readonly #peers: PeerQuery;
  /** The queues by key: two names with one key are one lock of the server. */
  readonly #queues = new Map<string, ResourceQueue>();
  /** The same queues by name, because hashing a name costs more than a lookup. */
  readonly #byName = new Map<string, ResourceQueue>();
  readonly #poll = new ParkedPoll(() => this.#queues.values());
  /** Identifies the grants that this object made by their signals, which stay the same when a grant is copied. */
  readonly #granted = new WeakSet<AbortSignal>();

  constructor(driver: OpeningDriver, settings: CheckedAdvisoryOptions) {
    this.#driver = driver;
    this.#sessionTimeoutMs = settings.sessionTimeoutMs;
    this.capabilities = {
      tenure: 'session',
      renewal: 'own-client',
      reach: 'network',
      modes: ['exclusive', 'shared'],
      order: 'fifo',
      fencing: settings.fencing === undefined ? 'none' : 'durable',
      ttl: { minMs: 1, stepMs: 1 },
      features: ['waiters', 'force-release'],
    };
    this.#peers = new PeerQuery({
      sessions: () => this.#sessions,
      queueOf: (key) => this.#queues.get(key),
      forceRelease: async (key, acquisitionIds) => {
        await this.#queues.get(key)?.forceRelease(acquisitionIds);
        this.#tidy(key);
      },
    });
    const open = (name: string): OwnConnection => driver.open(name);
    this.#sessions = new AdvisorySessions(open, settings, this.#peers.channels, {
      lost: (session, isMain) => {
        for (const [key, queue] of this.#queues) {
          queue.sessionLost(session);
          if (isMain) queue.hint();
          this.#tidy(key);
        }
      },
      freed: () => {
        for (const queue of this.#queues.values()) queue.unpark();
      },
      notified: (channel, payload) => this.#peers.received(channel, payload),
    });
    refuseAfterClose(this);
  }

  async attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    const attempt = await this.#with(request.resource, (queue) => queue.attempt(request, enqueue, call));
    if (attempt.status === 'granted') this.#isGranted(attempt.grant);
    return attempt;
  }

  async awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    const grant = await this.#byName.get(request.resource)?.awaitTurn(request, call);
    if (grant !== undefined) this.#isGranted(grant);
    return grant;
  }

  async abandon({ resource, acquisitionId }: AcquireRequest): Promise<void> {
    await this.#with(resource, (queue) => queue.leave(acquisitionId));
  }

  async release(grant: Grant, call: Call): Promise<'released' | 'not-held'> {
    const { resource, acquisitionId } = grant.request;
    if (await this.#with(resource, (queue) => queue.leave(acquisitionId))) return 'released';
    if (grant.lost !== undefined && this.#granted.has(grant.lost)) return 'not-held';
    // Another client made the grant. Only that client can release the lock, so it is asked to.
    const ended = await this.forceRelease(resource, acquisitionId, call);
    return ended.length > 0 ? 'released' : 'not-held';
  }

  async renew(items: readonly RenewItem[]): Promise<readonly RenewalStatus[]> {
    const acquisitions = items.map(({ grant: { request } }) =>
      this.#byName.get(request.resource)?.acquisitions.get(request.acquisitionId),
    );
    const sessions = new Set(acquisitions.flatMap((acquisition) => acquisition?.group.session ?? []));
    // An answer proves that the session lives, and with it all locks that it holds. A session that ended reported its losses.
    await Promise.all([...sessions].map((session) => session.confirm().catch(() => undefined)));
    return acquisitions.map((acquisition): RenewalStatus => {
      const held = acquisition?.grant !== undefined && acquisition.group.session?.alive === true;
      return held ? { status: 'held' } : { status: 'lost', reason: 'session-lost' };
    });
  }

  downgrade({ request }: Grant): Promise<RenewalStatus> {
    return this.#with(request.resource, (queue) => queue.downgrade(request.acquisitionId));
  }

  async inspect(resource: string, call: Call): Promise<ResourceState> {
    return await this.#peers.inspect(resource, keyOf(resource), call, []);
  }

  async ping(): Promise<void> {
    const main = await this.#sessions.main();
    await main.ask({ text: 'SELECT 1', values: [] });
  }

  /** Makes the sequence of the fencing tokens, as the first session does. Without tokens there is nothing to make. */
  async prepare(): Promise<void> {
    if (this.capabilities.fencing === 'durable') await this.#sessions.main();
  }

  async forceRelease(
    resource: string,
    expectedId: string | undefined,
    call: Call,
  ): Promise<readonly Holder[]> {
    const before = await this.inspect(resource, call);
    const ends = before.holders.filter(
      ({ acquisitionId }) => expectedId === undefined || acquisitionId === expectedId,
    );
    if (ends.length === 0) return [];
    const ids = ends.map(({ acquisitionId }) => acquisitionId);
    const { holders } = await this.#peers.inspect(resource, keyOf(resource), call, ids);
    const left = holders.find(({ acquisitionId }) => ids.includes(acquisitionId));
    if (left === undefined) return ends;
    throw new LockError(
      'LOCK_BACKEND',
      `Could not release by force: ${left.label ?? left.acquisitionId} still holds it. Only its own process can release ` +
        'an advisory lock; pg_terminate_backend() with its pid ends the session and all its locks.',
      { lockName: resource, backend: this.name },
    );
  }

  isRetryable(error: unknown): boolean {
    if (error instanceof SessionEndedError || error instanceof StandbyError) return true;
    return isRetryablePostgresError(error);
  }

  async close(): Promise<void> {
    this.#poll.stop();
    await this.#sessions.close();
    this.#queues.clear();
    this.#byName.clear();
    await this.#driver.close();
  }

  async #with<T>(resource: string, step: (queue: ResourceQueue) => Promise<T>): Promise<T> {
    let queue = this.#byName.get(resource);
    if (queue === undefined) {
      const key = keyOf(resource);
      const lock = new ServerLock(key, this.#sessionTimeoutMs, this.#sessions.tokens);
      queue = this.#queues.get(key) ?? new ResourceQueue(lock, this.#sessions, () => this.#poll.start());
      this.#queues.set(key, queue);
      this.#byName.set(resource, queue);
      queue.names.add(resource);
    }
    queue.users += 1;
    try {
      return await step(queue);
    } finally {
      queue.users -= 1;
      this.#tidy(queue.lock.key);
    }
  }

  #isGranted({ lost }: Grant): void {
    if (lost !== undefined) this.#granted.add(lost);
  }

  /** Forgets a resource that nobody here holds or waits for (docs/spec.md §9.1). */
  #tidy(key: string): void {
    const queue = this.#queues.get(key);
    if (queue?.unused !== true) return;
    this.#queues.delete(key);
    for (const name of queue.names) this.#byName.delete(name);
  }
}

function keyOf(resource: string): string {
  return String(advisoryKey(resource));
}
