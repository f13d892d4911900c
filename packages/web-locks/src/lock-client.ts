import { randomUUID } from 'node:crypto';
import { channel } from 'node:diagnostics_channel';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import {
  createLocks,
  isLockError,
  type Lease,
  type Lock,
  type LockBackend,
  type LockManager,
  type ResourceState,
} from '@locks/core';
import { asException, domException, invalid } from './exceptions.ts';
import { type Held, heldOn, isRobbedBy } from './held.ts';
import { Line, type Place } from './line.ts';
import { LockRequest } from './lock-request.ts';
import { makeLock } from './lock.ts';
import type { RequestArguments } from './request-arguments.ts';
import { ResourceNames } from './resource-names.ts';
import { labelOf, lockInfo, snapshotOf } from './snapshot.ts';
import { watchBackend } from './watched-backend.ts';
import type { LockManagerSnapshot, WebLocksOptions } from './web-locks.ts';

const DEFAULT_TTL_MS = 5_000;
/** How long a query waits for what was asked before it to be in the store. */
const PATIENCE_MS = 1_000;
const RELEASE_FAILED = channel('locks:release-failed');

/** One agent of the specification: its requests, in their order, and its view of the store. */
export class LockClient {
  readonly clientId = `${hostname()
    .replace(/[^\x21-\x7e]/g, '?')
    .slice(0, 100)}:${process.pid}:${randomUUID()}`;
  readonly #backendName: string;
  readonly #locks: LockManager;
  readonly #names: ResourceNames;
  readonly #held: Set<Held>;
  readonly #lines = new Map<string, Line>();
  /** By label. */
  readonly #live = new Map<string, LockRequest>();
  #made = 0;
  /** All requests made so far are processed: what the specification's lock task queue is for one agent. */
  #processed: Promise<unknown> = Promise.resolve();

  constructor(backend: LockBackend, { scope = 'web-locks', ttlMs, ...unknown }: WebLocksOptions) {
    const [key] = Object.keys(unknown);
    if (key !== undefined)
      throw invalid(`There is no option ${JSON.stringify(key)} here. Known: scope, ttlMs.`);
    this.#names = new ResourceNames(scope);
    const watched = watchBackend(backend, {
      queued: (label) => this.#live.get(label ?? '')?.processed.open(),
      leaving: (resource, done) => this.#expectLeave(resource, done),
    });
    const floor = backend?.capabilities?.ttl?.minMs ?? 0;
    this.#locks = createLocks(watched, {
      ttlMs: ttlMs ?? Math.max(DEFAULT_TTL_MS, floor),
      waitMs: Number.POSITIVE_INFINITY,
    });
    this.#backendName = backend.name;
    this.#held = heldOn(backend);
  }

  /** @throws DOMException `NotSupportedError` */
  checkSupport({ steal, mode }: RequestArguments): void {
    const { features, modes } = this.#locks.capabilities;
    if (steal && !features.includes('steal') && !features.includes('force-release')) {
      throw domException('NotSupportedError', 'The backend has neither "steal" nor "force-release".');
    }
    if (!modes.includes(mode)) {
      throw domException('NotSupportedError', `The backend has no ${mode} locks.`);
    }
  }

  request(wanted: RequestArguments): Promise<unknown> {
    this.#made += 1;
    const resource = this.#names.resourceOf(wanted.name);
    const request = new LockRequest(this.#made, labelOf(this.clientId, this.#made), resource, wanted);
    this.#live.set(request.label, request);
    const place = this.#lineOf(resource).join(request, this.#queues);
    const earlier = this.#processed;
    this.#processed = earlier.then(() => request.processed.opened);
    void this.#serve(request, place, earlier);
    return request.promise;
  }

  async query(): Promise<LockManagerSnapshot> {
    const made = this.#made;
    await this.#allProcessed();
    const states: ResourceState[] = [];
    for await (const state of this.#locks.list(this.#names.prefix)) states.push(state);
    const own = [...this.#live.values()];
    const names = new Map(own.map(({ resource, wanted }) => [resource, wanted.name]));
    return snapshotOf(states, {
      nameOf: (resource) => names.get(resource) ?? this.#names.nameOf(resource),
      isOver: (label = '') =>
        label.startsWith(`${this.clientId}#`) && this.#live.get(label)?.isOver !== false,
      queues: this.#queues,
      waiting: own
        .filter((request) => request.isPending && request.number <= made)
        .map(({ label, wanted }) => ({ label, info: lockInfo(this.clientId, wanted.mode, wanted.name) })),
    });
  }

  close(): Promise<void> {
    return this.#locks.close();
  }

  get #queues(): boolean {
    return this.#locks.capabilities.order === 'fifo';
  }

  /** Not for ever: a store that does not answer says so when it is asked for its list. */
  async #allProcessed(): Promise<void> {
    const stop = new AbortController();
    const patience = delay(PATIENCE_MS, undefined, { signal: stop.signal }).catch(() => {});
    await Promise.race([this.#processed, patience]);
    stop.abort();
  }

  async #serve(request: LockRequest, place: Place, earlier: Promise<unknown>): Promise<void> {
    try {
      const lease = await this.#acquire(request, place);
      // Callbacks run in the order of the requests, whatever their names.
      await earlier;
      if (lease === undefined) {
        request.resolve(called(request, undefined));
      } else if (request.isPending) {
        await this.#hold(request, lease);
      } else {
        // Aborted in the moment of the grant: the callback is never called.
        await this.#release(lease);
      }
    } catch (error) {
      request.reject(asException(error));
    } finally {
      request.end();
      this.#live.delete(request.label);
      this.#lines.get(request.resource)?.leave(request);
      this.#tidy(request.resource);
    }
  }

  /** `undefined`: the lock is not available. */
  async #acquire(request: LockRequest, place: Place): Promise<Lease | undefined> {
    const { steal, ifAvailable } = request.wanted;
    await (steal || ifAvailable || this.#queues ? place.processed : place.advanced);
    const lock = this.#lockOf(request);
    if (steal) return await this.#steal(request, lock);
    const { label, abort } = request;
    if (!ifAvailable) return await lock.acquire({ label, signal: abort?.signal });
    const line = this.#lineOf(request.resource);
    if (!this.#queues && line.hasWaitingBefore(request)) return undefined;
    await line.allLeftBefore(request);
    return await lock.tryAcquire({ label });
  }

  async #steal({ label, resource }: LockRequest, lock: Lock): Promise<Lease> {
    if (this.#locks.capabilities.features.includes('steal')) {
      const lease = await lock.acquire({ label, steal: true });
      this.#rob((held) => isRobbedBy(lease, held));
      return lease;
    }
    // The next best: the holds end, and those who wait already go first.
    const ended = await this.#locks.forceRelease(resource);
    const ids = new Set(ended.map(({ acquisitionId }) => acquisitionId));
    this.#rob(({ lease: { acquisitionId } }) => ids.has(acquisitionId));
    return await lock.acquire({ label });
  }

  /** Whoever is robbed from within the process is told at once, not at the next renewal. */
  #rob(isRobbed: (held: Held) => boolean): void {
    for (const held of [...this.#held]) if (isRobbed(held)) held.request.rob(undefined);
  }

  async #hold(request: LockRequest, lease: Lease): Promise<void> {
    const { signal } = lease;
    // Lost before anybody was told: the callback would run without the lock.
    signal.throwIfAborted();
    const held = { request, lease };
    this.#held.add(held);
    request.markHeld();
    signal.addEventListener('abort', () => request.rob(signal.reason), { once: true });
    const worked = called(request, lease);
    request.processed.open();
    await Promise.race([worked.catch(() => {}), request.robbed.opened]);
    this.#held.delete(held);
    await this.#release(lease);
    // Of one that was robbed, also if that came out only now, the promise is rejected already.
    request.resolve(worked);
  }

  /**
   * A loss is told by the lease's signal. Where the store gives no answer, the ttl ends the lock, and the work's outcome
   * stands.
   */
  async #release(lease: Lease): Promise<void> {
    const released = lease.release();
    this.#expectLeave(lease.name, released);
    try {
      await released;
    } catch (error) {
      if (isLockError(error, 'LOCK_LOST')) return;
      const { name: resource, acquisitionId } = lease;
      RELEASE_FAILED.publish({ resource, backend: this.#backendName, acquisitionId, error });
    }
  }

  #lockOf({ resource, wanted: { mode } }: LockRequest): Lock {
    return mode === 'shared' ? this.#locks.readWriteLock(resource).read : this.#locks.lock(resource);
  }

  #lineOf(resource: string): Line {
    let line = this.#lines.get(resource);
    if (line === undefined) this.#lines.set(resource, (line = new Line()));
    return line;
  }

  #expectLeave(resource: string, done: Promise<unknown>): void {
    this.#lineOf(resource).expectLeave(done, () => this.#tidy(resource));
  }

  #tidy(resource: string): void {
    if (this.#lines.get(resource)?.isEmpty) this.#lines.delete(resource);
  }
}

/** What the callback gives, as a promise; what it throws is its rejection. */
function called(
  { wanted: { callback, name, mode } }: LockRequest,
  lease: Lease | undefined,
): Promise<unknown> {
  const lock = lease === undefined ? null : makeLock({ name, mode, lease });
  return new Promise((resolve) => resolve(Reflect.apply(callback, undefined, [lock])));
}
