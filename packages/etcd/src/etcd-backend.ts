import { LockError } from '@locks/core';
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
import type { Acquisition } from './acquisition.ts';
import { Acquisitions } from './acquisitions.ts';
import { entriesAt } from './answer.ts';
import { Attempts, type Outcome } from './attempts.ts';
import { createdAt, modifiedAt, present, read, remove } from './conditions.ts';
import { encodeAgain, type Entry } from './entry.ts';
import { EtcdPort, type Limit } from './etcd-port.ts';
import { Holdings } from './holdings.ts';
import { KeepAlive } from './keep-alive.ts';
import { Keys } from './keys.ts';
import { Leases } from './leases.ts';
import {
  type CheckedOptions,
  checkOptions,
  type ClientSource,
  clientSource,
  type EtcdBackendOptions,
  type EtcdClient,
} from './options.ts';
import { Renewal } from './renewal.ts';
import { isRetryableEtcdError } from './retryable.ts';
import { States } from './states.ts';
import { WaiterSession } from './waiter-session.ts';
import { WaitingRoom } from './waiting-room.ts';
import { WatchStream } from './watch-stream.ts';

const capabilities = {
  tenure: 'lease',
  reach: 'network',
  modes: ['exclusive', 'shared', 'permit'],
  order: 'fifo',
  fencing: 'durable',
  ttl: { minMs: 1_000, stepMs: 1_000 },
  features: ['list', 'waiters', 'force-release', 'steal', 'many'],
} as const satisfies BackendCapabilities;

export type EtcdCapabilities = typeof capabilities;

/** Should all else fail: the waiting room looks after everybody who waits every few seconds. */
const FALLBACK_MS = 300_000;
const CLOSE_MS = 500;
const GIVE_UP_MS = 3_000;
/** A server takes 128 operations in one transaction. */
const MOST_AT_ONCE = 100;
const FORCED_AT_ONCE = 60;
/** Each but the first after another write to the hold. */
const DOWNGRADE_TRIES = 3;

/**
 * Locks in etcd, on the package `etcd3`. A client that is given is never closed.
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
  return new EtcdBackend(clientSource(client), checkOptions(options));
}

class EtcdBackend implements LockBackend<EtcdCapabilities> {
  readonly spec = 'locks-backend/1';
  readonly name = 'etcd';
  readonly capabilities = capabilities;
  readonly #port: EtcdPort;
  readonly #keys: Keys;
  readonly #keepAlive: KeepAlive;
  readonly #leases: Leases;
  readonly #watches: WatchStream;
  readonly #session: WaiterSession;
  readonly #acquisitions: Acquisitions;
  readonly #attempts: Attempts;
  readonly #room: WaitingRoom;
  readonly #holdings: Holdings;
  readonly #renewal: Renewal;
  readonly #states: States;
  #closing: Promise<void> | undefined;

  constructor(source: ClientSource, { prefix, waiterTtlSeconds, callTimeoutMs }: CheckedOptions) {
    this.#port = new EtcdPort(source, callTimeoutMs);
    this.#keys = new Keys(prefix);
    this.#keepAlive = new KeepAlive(this.#port, callTimeoutMs);
    this.#leases = new Leases(this.#port, this.#keepAlive);
    this.#watches = new WatchStream(this.#port);
    this.#session = new WaiterSession(this.#port, this.#keepAlive, this.#keys, waiterTtlSeconds, {
      tick: () => this.#tick(),
      lost: () => this.#room.lookAgain(),
    });
    this.#acquisitions = new Acquisitions(this.#keys, (ended) => this.#holdings.unwatch(ended));
    this.#attempts = new Attempts(this.#port, this.#leases, this.#session, this.#acquisitions);
    this.#room = new WaitingRoom(this.#port, this.#watches, this.#attempts, this.#acquisitions);
    this.#holdings = new Holdings(this.#port, this.#watches, this.#leases, this.#session, this.#acquisitions);
    this.#renewal = new Renewal(this.#port, this.#leases, this.#holdings, this.#acquisitions, this.#keys);
    this.#states = new States(this.#port, this.#keys);
  }

  async attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    this.#assertOpen();
    const acquisition = this.#acquisitions.open(request);
    const outcome = await acquisition.inTurn(async () => {
      acquisition.assertWanted();
      if (request.steal === true) return await this.#attempts.steal(acquisition, call);
      if (enqueue) return await this.#attempts.enqueue(acquisition, call);
      const grabbed = await this.#attempts.grab([acquisition], call);
      if ('status' in grabbed) return grabbed;
      return { status: 'granted', grant: grabbed[0] as Grant } as const;
    });
    return this.#attempted(acquisition, outcome, enqueue && request.steal !== true);
  }

  async attemptMany(requests: readonly AcquireRequest[], call: Call): Promise<readonly Grant[] | undefined> {
    this.#assertOpen();
    if (requests.length > MOST_AT_ONCE) {
      throw new LockError(
        'LOCK_INVALID_ARGUMENT',
        `etcd can take at most ${MOST_AT_ONCE} locks in one step, not ${requests.length}.`,
        { backend: this.name },
      );
    }
    const acquisitions = requests.map((request) => this.#acquisitions.open(request));
    const grabbed = await this.#attempts.grab(acquisitions, call);
    for (const acquisition of acquisitions) {
      if ('status' in grabbed) this.#setAside(acquisition);
      else this.#holdings.granted(acquisition);
    }
    return 'status' in grabbed ? undefined : grabbed;
  }

  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    return this.#room.awaitTurn(request, call).then((grant) => {
      const acquisition = this.#acquisitions.get(request.acquisitionId);
      if (grant !== undefined && acquisition !== undefined) this.#holdings.granted(acquisition);
      return grant;
    });
  }

  async abandon(request: AcquireRequest, call: Call): Promise<void> {
    await this.#giveUp(request, call);
  }

  async renew(items: readonly RenewItem[], call: Call): Promise<readonly Standing[]> {
    this.#watches.probe();
    return await this.#renewal.renew(items, call);
  }

  async release(grant: Grant, call: Call): Promise<'released' | 'not-held' | 'unknown'> {
    const acquisition = this.#acquisitions.get(grant.request.acquisitionId);
    if (acquisition?.hold !== undefined) return await this.#holdings.release(acquisition, call);
    // Granted by another client, or lost here: the key alone says.
    const key = this.#keyOf(grant.request);
    const { succeeded } = await this.#port.txn(
      { compare: [present(key)], success: [remove(key)], failure: [] },
      call,
    );
    return succeeded ? 'released' : 'not-held';
  }

  async downgrade({ request }: Grant, call: Call): Promise<Standing> {
    const key = this.#keyOf(request);
    // Who finds the hold changed looks again: it was renewed, or downgraded by this very write, whose answer was lost.
    for (let tries = 0; tries < DOWNGRADE_TRIES; tries += 1) {
      const response = await this.#port.txn({ compare: [], success: [read({ key })], failure: [] }, call);
      const [own] = entriesAt(response, 0);
      if (own?.held !== true) return { status: 'lost', reason: 'force-released' };
      if (own.mode.kind === 'shared' || (await this.#writeShared(key, own, call))) {
        const hold = this.#acquisitions.get(request.acquisitionId)?.hold;
        if (hold !== undefined) hold.shared = true;
        return { status: 'held' };
      }
    }
    return { status: 'unknown', error: new Error('the hold changed each time it was to be downgraded') };
  }

  async resize(resource: string, limit: number, call: Call): Promise<{ readonly status: 'set' } | Conflict> {
    return await this.#states.resize(resource, limit, call);
  }

  async inspect(resource: string, call: Call): Promise<ResourceState> {
    return await this.#states.inspect(resource, call);
  }

  list(prefix: string, call: Call): AsyncIterable<ResourceState> {
    return this.#states.list(prefix, call);
  }

  async forceRelease(
    resource: string,
    expectedId: string | undefined,
    call: Call,
  ): Promise<readonly Holder[]> {
    const entries = await this.#states.entries(resource, call);
    const holds = entries.filter(
      ({ held, acquisitionId }) => held && (expectedId === undefined || expectedId === acquisitionId),
    );
    const holders = await Promise.all(holds.map((entry) => this.#states.holder(entry, call)));
    const ended: Holder[] = [];
    for (let start = 0; start < holds.length; start += FORCED_AT_ONCE) {
      const were = await this.#holdings.end(holds.slice(start, start + FORCED_AT_ONCE), call);
      ended.push(...holders.slice(start, start + FORCED_AT_ONCE).filter((_, index) => were[index]));
    }
    return ended;
  }

  isRetryable(error: unknown): boolean {
    return isRetryableEtcdError(error);
  }

  async close(): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  /** Whether it was written: the hold is still as it was read. */
  async #writeShared(key: Buffer, own: Entry, call: Call): Promise<boolean> {
    const put = { request_put: { key, value: encodeAgain(own, { kind: 'shared' }), ignore_lease: true } };
    const conditions = [createdAt(key, own.createRevision), modifiedAt(key, own.modRevision)];
    const { succeeded } = await this.#port.txn({ compare: conditions, success: [put], failure: [] }, call);
    return succeeded;
  }

  #attempted(acquisition: Acquisition, outcome: Outcome, enqueued: boolean): Attempt {
    switch (outcome.status) {
      case 'granted':
        acquisition.unfollow?.();
        this.#holdings.granted(acquisition);
        return outcome;
      case 'blocked':
        if (!enqueued) {
          this.#setAside(acquisition);
          return { status: 'contended' };
        }
        this.#room.follow(acquisition, outcome);
        return { status: 'contended', retryAfterMs: FALLBACK_MS };
      case 'conflict':
        this.#setAside(acquisition);
        return outcome;
      case 'out-of-line':
        return { status: 'contended', retryAfterMs: 0 };
      default:
        return outcome satisfies never;
    }
  }

  /** It neither holds nor waits; its lease serves others. */
  #setAside(acquisition: Acquisition): void {
    if (acquisition.hold !== undefined || acquisition.place !== undefined) return;
    const { lease, doubtful, session } = acquisition;
    // A request to queue may still be on its way: core gives the id up, and that puts an end to it.
    if (doubtful && session !== undefined) return;
    acquisition.lease = undefined;
    if (lease !== undefined) {
      if (doubtful) this.#leases.drop(lease);
      else this.#leases.giveBack(lease);
    }
    this.#acquisitions.forget(acquisition);
  }

  #keyOf({ resource, acquisitionId }: AcquireRequest): Buffer {
    return this.#keys.of(resource, acquisitionId);
  }

  #tick(): void {
    this.#watches.probe();
    this.#room.lookRound();
    this.#room.dropNeglected((request) => void this.#giveUp(request, GIVE_UP_MS).catch(() => {}));
  }

  async #giveUp(request: AcquireRequest, limit: Limit): Promise<void> {
    const all = this.#acquisitions.giveUp(request);
    for (const acquisition of all) this.#room.leave(acquisition);
    await Promise.all(all.map((acquisition) => this.#holdings.abandon(acquisition, limit)));
  }

  #assertOpen(): void {
    if (this.#closing === undefined) return;
    throw new LockError('LOCK_CLOSED', 'The etcd backend was closed.', { backend: this.name });
  }

  async #close(): Promise<void> {
    this.#room.close();
    this.#holdings.close();
    this.#watches.close();
    await Promise.allSettled([this.#session.close(CLOSE_MS), this.#leases.close(CLOSE_MS)]);
    this.#keepAlive.close();
    this.#acquisitions.close();
    this.#port.close();
  }
}
