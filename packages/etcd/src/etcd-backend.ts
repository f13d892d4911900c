import { LockError } from '@locks/core';
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
import { refuseAfterClose } from '@locks/core/backend';
import type { Acquisition } from './acquisition.ts';
import type { AttemptOutcome } from './attempt-outcome.ts';
import { composeParts, type EtcdParts } from './composition.ts';
import { present, remove } from './conditions.ts';
import { isRetryableEtcdError } from './etcd-errors.ts';
import { checkOptions, clientSource, type EtcdBackendOptions, type EtcdClient } from './options.ts';

const capabilities = {
  tenure: 'lease',
  renewal: 'any-client',
  reach: 'network',
  modes: ['exclusive', 'shared', 'permit'],
  order: 'fifo',
  fencing: 'durable',
  ttl: { minMs: 1_000, stepMs: 1_000 },
  features: ['list', 'waiters', 'force-release', 'steal', 'transfer', 'many'],
} as const satisfies BackendCapabilities;

/** The type of the capabilities of the etcd backend. */
export type EtcdCapabilities = typeof capabilities;

/** The pause before a waiter attempts again, as a last resort: the local waiters are checked every few seconds anyway. */
const FALLBACK_MS = 300_000;
const CLOSE_MS = 500;
/** The most locks that one step takes: a server accepts 128 operations in one transaction. */
const MOST_AT_ONCE = 100;
const FORCED_AT_ONCE = 60;

// setup: import { createLocks } from '@locks/core'; import { etcdBackend } from '@locks/etcd';
// setup: declare function work(): Promise<void>;
/**
 * Locks in etcd, through the package `etcd3`. The backend never closes a client that you pass.
 *
 * @param client - an `Etcd3`, or the options for one
 * @example
 * ```ts
 * const locks = createLocks(etcdBackend({ hosts: ['http://10.0.0.1:2379', 'http://10.0.0.2:2379'] }));
 * await locks.lock('nightly-report').run(work);
 * ```
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option.
 */
export function etcdBackend(
  client: EtcdClient,
  options: EtcdBackendOptions = {},
): LockBackend<EtcdCapabilities> {
  return new EtcdBackend(composeParts(clientSource(client), checkOptions(options)));
}

class EtcdBackend implements LockBackend<EtcdCapabilities> {
  readonly spec = 'locks-backend/1';
  readonly name = 'etcd';
  readonly capabilities = capabilities;
  readonly #parts: EtcdParts;
  #closing: Promise<void> | undefined;

  constructor(parts: EtcdParts) {
    this.#parts = parts;
    refuseAfterClose(this);
  }

  async attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    if (!this.#parts.layout.isKnown) {
      await this.#parts.layout.check();
      // The request was abandoned meanwhile: its transaction would come after the abandon.
      if (isOver(call)) return { status: 'contended' };
    }
    const acquisition = this.#parts.acquisitions.open(request, call);
    try {
      return await this.#attempt(acquisition, request, enqueue, call);
    } catch (error) {
      // An earlier grant of the id ended during the attempt, which starts anew.
      if (!acquisition.isLost) throw error;
      return await this.#attempt(this.#parts.acquisitions.open(request, call), request, enqueue, call);
    }
  }

  async #attempt(
    acquisition: Acquisition,
    request: AcquireRequest,
    enqueue: boolean,
    call: Call,
  ): Promise<Attempt> {
    const outcome = await acquisition.serialized(async () => {
      acquisition.assertWanted();
      const { direct, entrance } = this.#parts;
      if (request.steal === true) return await direct.steal(acquisition, call);
      if (request.adopts !== undefined) return await direct.adopt(acquisition, call);
      if (enqueue) return await entrance.enter(acquisition, call);
      const grants = await direct.takeAll([acquisition], call);
      if ('status' in grants) return grants;
      return { status: 'granted', grant: grants[0] as Grant } as const;
    });
    return this.#attempted(acquisition, outcome, enqueue && request.steal !== true);
  }

  async attemptMany(requests: readonly AcquireRequest[], call: Call): Promise<readonly Grant[] | undefined> {
    if (requests.length > MOST_AT_ONCE) {
      throw new LockError(
        'LOCK_INVALID_ARGUMENT',
        `etcd can take at most ${MOST_AT_ONCE} locks in one step, not ${requests.length}.`,
        { backend: this.name },
      );
    }
    if (!this.#parts.layout.isKnown) {
      await this.#parts.layout.check();
      if (isOver(call)) return undefined;
    }
    const acquisitions = requests.map((request) => this.#parts.acquisitions.open(request, call));
    const grants = await this.#parts.direct.takeAll(acquisitions, call);
    for (const acquisition of acquisitions) {
      if ('status' in grants) this.#dismiss(acquisition);
      else this.#parts.holdings.granted(acquisition);
    }
    return 'status' in grants ? undefined : grants;
  }

  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    return this.#parts.waiters.awaitTurn(request, call);
  }

  async abandon(request: AcquireRequest, call: Call): Promise<void> {
    await this.#parts.waiters.abandon(request, call);
  }

  async renew(items: readonly RenewItem[], call: Call): Promise<readonly RenewalStatus[]> {
    this.#parts.watches.probe();
    return await this.#parts.renewer.renew(items, call);
  }

  async release(grant: Grant, call: Call): Promise<'released' | 'not-held' | 'unknown'> {
    const acquisition = this.#parts.acquisitions.get(grant.request.acquisitionId);
    if (acquisition?.hold !== undefined) return await this.#parts.waiters.release(acquisition, call);
    // Another client was granted the lock, or this backend lost it: only the key tells.
    const key = this.#keyOf(grant.request);
    const { succeeded } = await this.#parts.port.txn(
      { compare: [present(key)], success: [remove(key)], failure: [] },
      call,
    );
    return succeeded ? 'released' : 'not-held';
  }

  async downgrade(grant: Grant, call: Call): Promise<RenewalStatus> {
    return await this.#parts.holdings.downgrade(grant, call);
  }

  async resize(resource: string, limit: number, call: Call): Promise<{ readonly status: 'set' } | Conflict> {
    if (!this.#parts.layout.isKnown) await this.#parts.layout.check();
    return await this.#parts.states.resize(resource, limit, call);
  }

  async inspect(resource: string, call: Call, options?: InspectOptions): Promise<ResourceState> {
    return await this.#parts.states.inspect(resource, call, options);
  }

  async ping(call: Call): Promise<void> {
    await this.#parts.port.ping(call);
  }

  /** Writes the marker of the layout, all that lies there before the first lock. */
  async prepare(): Promise<void> {
    await this.#parts.layout.check();
  }

  list(prefix: string, call: Call): AsyncIterable<ResourceState> {
    return this.#parts.states.list(prefix, call);
  }

  async forceRelease(
    resource: string,
    expectedId: string | undefined,
    call: Call,
  ): Promise<readonly Holder[]> {
    if (!this.#parts.layout.isKnown) await this.#parts.layout.check();
    const entries = await this.#parts.states.entries(resource, call);
    const holds = entries.filter(
      ({ held, acquisitionId }) => held && (expectedId === undefined || expectedId === acquisitionId),
    );
    const holders = await Promise.all(holds.map((entry) => this.#parts.states.holder(entry, call)));
    const ended: Holder[] = [];
    for (let start = 0; start < holds.length; start += FORCED_AT_ONCE) {
      const were = await this.#parts.holdings.end(holds.slice(start, start + FORCED_AT_ONCE), call);
      ended.push(...holders.slice(start, start + FORCED_AT_ONCE).filter((_, index) => were[index]));
    }
    return ended;
  }

  isClientClosed(): boolean {
    return this.#parts.port.isClientClosed;
  }

  connectionError(): unknown {
    return this.#parts.port.connectionError;
  }

  isRetryable(error: unknown): boolean {
    return isRetryableEtcdError(error);
  }

  async close(): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  #attempted(acquisition: Acquisition, outcome: AttemptOutcome, enqueued: boolean): Attempt {
    switch (outcome.status) {
      case 'granted':
        acquisition.stopWatching?.();
        this.#parts.holdings.granted(acquisition);
        return outcome;
      case 'blocked':
        if (!enqueued) {
          this.#dismiss(acquisition);
          return { status: 'contended' };
        }
        this.#parts.waiters.blocked(acquisition, outcome);
        return { status: 'contended', retryAfterMs: FALLBACK_MS };
      case 'conflict':
        this.#dismiss(acquisition);
        return outcome;
      case 'not-queued':
        return { status: 'contended', retryAfterMs: 0 };
      default:
        return outcome satisfies never;
    }
  }

  /** Forgets an acquisition that neither holds nor waits, and lets others use its lease. */
  #dismiss(acquisition: Acquisition): void {
    if (acquisition.hold !== undefined || acquisition.position !== undefined) return;
    const { lease, hasUnansweredWrite, session } = acquisition;
    // A request to queue may still be under way: core abandons the id, and that refuses the request.
    if (hasUnansweredWrite && session !== undefined) return;
    acquisition.lease = undefined;
    if (lease !== undefined) {
      if (hasUnansweredWrite) this.#parts.leases.drop(lease);
      else this.#parts.leases.release(lease);
    }
    this.#parts.acquisitions.forget(acquisition);
  }

  #keyOf({ resource, acquisitionId }: AcquireRequest): Buffer {
    return this.#parts.keys.of(resource, acquisitionId);
  }

  async #close(): Promise<void> {
    const { waiters, holdings, watches, sessions, leases, keepAlives, acquisitions, port } = this.#parts;
    waiters.close();
    holdings.close();
    watches.close();
    await Promise.allSettled([sessions.close(CLOSE_MS), leases.close(CLOSE_MS)]);
    keepAlives.close();
    acquisitions.close();
    port.close();
  }
}

function isOver(call: Call): boolean {
  return call.signal?.aborted === true || call.now() > call.deadline;
}
