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
  Standing,
} from '@locks/core/backend';
import { openPlace } from '../pool/place.ts';
import { isRetryablePostgresError } from '../pool/retryable.ts';
import { advisoryKey } from './advisory-key.ts';
import { StandbyError } from './greeting.ts';
import { type CheckedSettings, checkSettings, type PostgresAdvisoryOptions } from './options.ts';
import { ParkedPoll } from './parked-poll.ts';
import { ResourceQueue } from './resource-queue.ts';
import { ServerLock } from './server-lock.ts';
import { SessionEndedError } from './session.ts';
import { Sessions } from './sessions.ts';
import { Survey } from './survey.ts';

/** What the advisory backend promises; `fencing` as it was configured. */
export interface PostgresAdvisoryCapabilities<Fencing extends 'durable' | 'none' = 'durable' | 'none'> {
  readonly tenure: 'session';
  readonly reach: 'network';
  readonly modes: readonly ['exclusive', 'shared'];
  readonly order: 'fifo';
  readonly fencing: Fencing;
  readonly ttl: { readonly minMs: 1; readonly stepMs: 1 };
  readonly features: readonly ['waiters', 'force-release'];
}

/**
 * Locks that live as long as a session with PostgreSQL: advisory locks, of which one connection carries any number.
 * Whoever has to wait stands in the server's own queue. Connects at the first call.
 *
 * @example
 * ```ts
 * const locks = createLocks(postgresAdvisoryBackend({ connectionString: 'postgres://app@db/shop' }));
 * await locks.lock('nightly-report').run(work);
 * ```
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option
 */
export function postgresAdvisoryBackend(
  options: PostgresAdvisoryOptions & { readonly fencing: { readonly schema: string } },
): LockBackend<PostgresAdvisoryCapabilities<'durable'>>;
export function postgresAdvisoryBackend(
  options: PostgresAdvisoryOptions & { readonly fencing?: undefined },
): LockBackend<PostgresAdvisoryCapabilities<'none'>>;
export function postgresAdvisoryBackend(
  options: PostgresAdvisoryOptions,
): LockBackend<PostgresAdvisoryCapabilities>;
export function postgresAdvisoryBackend(
  options: PostgresAdvisoryOptions,
): LockBackend<PostgresAdvisoryCapabilities> {
  return new AdvisoryBackend(options, checkSettings(options));
}

class AdvisoryBackend implements LockBackend<PostgresAdvisoryCapabilities> {
  readonly spec = 'locks-backend/1';
  readonly name = 'postgres-advisory';
  readonly capabilities: PostgresAdvisoryCapabilities;
  readonly #settings: CheckedSettings;
  readonly #sessions: Sessions;
  readonly #survey: Survey;
  /** By key, not by name: two names of one key would be one lock of the session. */
  readonly #queues = new Map<string, ResourceQueue>();
  /** The same ones: a hash costs more than a look-up. */
  readonly #byName = new Map<string, ResourceQueue>();
  readonly #poll = new ParkedPoll(() => this.#queues.values());
  /** The signals of the grants made here, whatever was put around a grant since. */
  readonly #granted = new WeakSet<AbortSignal>();

  constructor(options: PostgresAdvisoryOptions, settings: CheckedSettings) {
    this.#settings = settings;
    this.capabilities = {
      tenure: 'session',
      reach: 'network',
      modes: ['exclusive', 'shared'],
      order: 'fifo',
      fencing: settings.schema === undefined ? 'none' : 'durable',
      ttl: { minMs: 1, stepMs: 1 },
      features: ['waiters', 'force-release'],
    };
    this.#survey = new Survey({
      queueOf: (key) => this.#queues.get(key),
      forceRelease: async (key, acquisitionIds) => {
        await this.#queues.get(key)?.forceRelease(acquisitionIds);
        this.#tidy(key);
      },
    });
    // Its connections are ours even where the pool is not: a lock must not take one from the application.
    this.#sessions = new Sessions(openPlace(options).pool, settings, this.#survey.channels, {
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
      notified: (channel, payload) => this.#survey.heard(channel, payload, this.#sessions),
    });
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
    // Granted by another client of this store: only that one can give it back, so it is asked to.
    const ended = await this.forceRelease(resource, acquisitionId, call);
    return ended.length > 0 ? 'released' : 'not-held';
  }

  async renew(items: readonly RenewItem[]): Promise<readonly Standing[]> {
    const entries = items.map(({ grant: { request } }) =>
      this.#byName.get(request.resource)?.entries.get(request.acquisitionId),
    );
    const sessions = new Set(entries.flatMap((entry) => entry?.run.session ?? []));
    // An answer proves the session, and with it all that it holds; a session that ended has told its loss already.
    await Promise.all([...sessions].map((session) => session.fresh().catch(() => undefined)));
    return entries.map((entry): Standing => {
      const held = entry?.grant !== undefined && entry.run.session?.alive === true;
      return held ? { status: 'held' } : { status: 'lost', reason: 'session-lost' };
    });
  }

  downgrade({ request }: Grant): Promise<Standing> {
    return this.#with(request.resource, (queue) => queue.downgrade(request.acquisitionId));
  }

  async inspect(resource: string, call: Call): Promise<ResourceState> {
    return await this.#survey.look(this.#sessions, resource, keyOf(resource), call);
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
    const { holders } = await this.#survey.look(this.#sessions, resource, keyOf(resource), call, ids);
    const left = holders.find(({ acquisitionId }) => ids.includes(acquisitionId));
    if (left === undefined) return ends;
    throw new LockError(
      'LOCK_BACKEND',
      `Could not release by force: ${left.label ?? left.acquisitionId} still holds it. Only its own process can give ` +
        'back an advisory lock; pg_terminate_backend() with its pid ends the session and all its locks.',
      { resource, backend: this.name },
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
  }

  async #with<T>(resource: string, step: (queue: ResourceQueue) => Promise<T>): Promise<T> {
    let queue = this.#byName.get(resource);
    if (queue === undefined) {
      const key = keyOf(resource);
      const lock = new ServerLock(key, this.#settings.sessionTimeoutMs, this.#sessions.tokens);
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

  /** Nothing is kept of a resource that nobody here holds or waits for (docs/spec.md §9.1). */
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
