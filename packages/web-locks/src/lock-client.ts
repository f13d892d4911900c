import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { createLocks, type Lease, type Lock, type LockManager, type ResourceState } from '@locks/core';
import {
  type LockBackend,
  oneOf,
  optional,
  type OptionTable,
  readOptions,
  text,
  wholeNumber,
  withTimeLimit,
} from '@locks/core/backend';
import { asException, domException } from './exceptions.ts';
import { makeDeferred } from './deferred.ts';
import { type HeldLock, heldOn, isStolenBy } from './held-locks.ts';
import { LockRequest } from './lock-request.ts';
import { makeLock } from './lock.ts';
import type { RequestArguments } from './request-arguments.ts';
import { ResourceNames } from './resource-names.ts';
import { labelOf, lockInfo, snapshotOf } from './snapshot.ts';
import { TaskQueue } from './task-queue.ts';
import { watchBackend } from './watched-backend.ts';
import { type Predecessors, WebLocksQueue } from './web-locks-queue.ts';
import type { LockManagerSnapshot, WebLocksOptions } from './types.ts';

const DEFAULT_TTL_MS = 5_000;
/** Core refuses a ttl below the minimum of the backend. */
const OPTION_TABLE = {
  scope: optional(text('a non-empty string', /./s), 'web-locks'),
  ttlMs: optional(wholeNumber(10, 31_536_000_000, 'milliseconds')),
  order: optional(oneOf('client', 'name'), 'client'),
} satisfies OptionTable<WebLocksOptions>;
/** The longest wait of a granted reader for the callbacks of the readers before it, in milliseconds. */
const READERS_BEFORE_MS = 1_000;

/** One agent of the specification: its requests, in their order, and its view of the store. */
export class LockClient {
  readonly clientId = `${hostname()
    .replace(/[^\x21-\x7e]/g, '?')
    .slice(0, 100)}:${process.pid}:${randomUUID()}`;
  readonly #locks: LockManager;
  readonly #names: ResourceNames;
  readonly #held: Set<HeldLock>;
  /** The queues, by resource. */
  readonly #queues = new Map<string, WebLocksQueue>();
  /** The task queues: one for the client, or with `order: 'name'` one for each resource with tasks in flight. */
  readonly #tasks = new Map<string, TaskQueue>();
  readonly #taskKey: (resource: string) => string;
  /** The requests that are not over, by label. */
  readonly #live = new Map<string, LockRequest>();
  #made = 0;
  isClosed = false;

  constructor(backend: LockBackend, options: WebLocksOptions | undefined) {
    const { scope, ttlMs, order } = readOptions('webLocks()', options, OPTION_TABLE);
    this.#taskKey = order === 'client' ? () => '' : (resource) => resource;
    this.#names = new ResourceNames(scope);
    const watched = watchBackend(backend, {
      queued: (label) => this.#live.get(label ?? '')?.processed.resolve(),
      leaving: (label, done) => void this.#live.get(label ?? '')?.removals.push(done),
    });
    const floor = backend?.capabilities?.ttl?.minMs ?? 0;
    this.#locks = createLocks(watched, {
      ttlMs: ttlMs ?? Math.max(DEFAULT_TTL_MS, floor),
      waitMs: Number.POSITIVE_INFINITY,
    });
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
    const label = labelOf(this.clientId, this.#made);
    const resource = this.#names.resourceOf(wanted.name);
    const request = new LockRequest(this.#made, label, resource, wanted, (aborted) =>
      this.#enqueue(resource, () => aborted.withdraw()),
    );
    this.#live.set(label, request);
    const predecessors = this.#queueOf(resource).join(request);
    const turn = makeDeferred();
    this.#enqueue(resource, () => {
      turn.resolve();
      return request.processed.promise;
    });
    // `#serve()` is called here, so that the callback runs in the asynchronous context of the request.
    void this.#serve(request, predecessors, turn.promise);
    return request.promise;
  }

  async query(): Promise<LockManagerSnapshot> {
    const made = this.#made;
    await Promise.all([...this.#tasks.values()].map((tasks) => tasks.answered()));
    const states: ResourceState[] = [];
    for await (const state of this.#locks.list(this.#names.prefix)) states.push(state);
    const isShown = (request: LockRequest | undefined): boolean =>
      request !== undefined && !request.isOver && request.number <= made;
    const own = [...this.#live.values()];
    const names = new Map(own.map(({ resource, wanted }) => [resource, wanted.name]));
    return snapshotOf(states, {
      nameOf: (resource) => names.get(resource) ?? this.#names.nameOf(resource),
      isOver: (label = '') => label.startsWith(`${this.clientId}#`) && !isShown(this.#live.get(label)),
      isFifo: this.#isFifo,
      waiting: own
        .filter((request) => request.isPending && isShown(request))
        .map(({ label, wanted }) => ({ label, info: lockInfo(this.clientId, wanted.mode, wanted.name) })),
    });
  }

  close(): Promise<void> {
    this.isClosed = true;
    const closed = this.#locks.close();
    // Core refuses the tasks that wait to be sent.
    for (const tasks of this.#tasks.values()) tasks.unblock();
    return closed;
  }

  /** Whether the store serves waiters in order; otherwise only the first request of a queue is sent to it. */
  get #isFifo(): boolean {
    return this.#locks.capabilities.order === 'fifo';
  }

  /** Sends requests, aborts and releases to the store in the order in which they are made. */
  #enqueue(resource: string, send: () => Promise<unknown>): void {
    const key = this.#taskKey(resource);
    let tasks = this.#tasks.get(key);
    if (tasks === undefined) this.#tasks.set(key, (tasks = new TaskQueue()));
    if (this.isClosed) tasks.unblock();
    tasks.add(async () => {
      await send();
      if (tasks.isLast) this.#tasks.delete(key);
    });
  }

  async #serve(request: LockRequest, predecessors: Predecessors, turn: Promise<void>): Promise<void> {
    try {
      await turn;
      const lease = await this.#acquire(request, predecessors);
      if (lease === undefined) {
        if (request.isPending) request.resolve(called(request, undefined));
        return;
      }
      await this.#awaitReadersBefore(request, predecessors);
      if (request.isPending) {
        await this.#hold(request, lease);
      } else {
        // The request was aborted in the moment of the grant: the callback is never called.
        request.processed.resolve();
        await request.withdrawn.promise;
        await this.#release(lease);
      }
    } catch (error) {
      request.reject(asException(error));
    } finally {
      request.end();
      this.#live.delete(request.label);
      this.#leaveQueue(request);
    }
  }

  /**
   * Waits for the callbacks of earlier readers. Readers are granted together and learn of it in any order; their callbacks are
   * called in the order of the requests.
   */
  async #awaitReadersBefore(
    { wanted: { mode } }: LockRequest,
    { readersNotified }: Predecessors,
  ): Promise<void> {
    if (!this.#isFifo || mode !== 'shared') return;
    // The wait is limited, because a reader that lost its position in the store's queue may stand behind this one now.
    await withTimeLimit(readersNotified, READERS_BEFORE_MS, () => undefined);
  }

  /** Acquires the lock; gives `undefined` where it is not available, or the request was aborted. */
  async #acquire(request: LockRequest, predecessors: Predecessors): Promise<Lease | undefined> {
    const { steal, ifAvailable } = request.wanted;
    // This wait ends at once unless the store stalls: even then the requests for one name stay in order.
    await predecessors.processed;
    // A request that was aborted before it was sent is never sent; it stays in the queue until its withdrawal has its turn.
    if (request.isOver) {
      request.processed.resolve();
      await request.withdrawn.promise;
      return undefined;
    }
    const lock = this.#lockOf(request);
    if (steal) return await this.#steal(request, lock);
    const { label, abort } = request;
    const queue = this.#queueOf(request.resource);
    if (ifAvailable && queue.isBehindConflict(request)) return undefined;
    if (!this.#isFifo && queue.isBehindWaiting(request)) {
      if (ifAvailable) return undefined;
      request.processed.resolve();
      await Promise.race([predecessors.dequeued, request.withdrawn.promise]);
      if (request.isOver) return undefined;
    }
    if (ifAvailable) return await lock.tryAcquire({ label });
    return await lock.acquire({ label, signal: abort?.signal });
  }

  async #steal({ label, resource }: LockRequest, lock: Lock): Promise<Lease> {
    if (this.#locks.capabilities.features.includes('steal')) {
      const lease = await lock.acquire({ label, steal: true });
      this.#endHolds((held) => isStolenBy(lease, held));
      return lease;
    }
    // Without the feature `steal` the holds end, and present waiters go first.
    const ended = await this.#locks.forceRelease(resource);
    const ids = new Set(ended.map(({ acquisitionId }) => acquisitionId));
    this.#endHolds(({ lease: { acquisitionId } }) => ids.has(acquisitionId));
    return await lock.acquire({ label });
  }

  /** Notifies holders in this process of the steal at once, not at their next renewal. */
  #endHolds(isStolen: (held: HeldLock) => boolean): void {
    for (const held of [...this.#held]) if (isStolen(held)) held.request.lose(undefined);
  }

  async #hold(request: LockRequest, lease: Lease): Promise<void> {
    const { signal } = lease;
    // The lock may be lost before the callback was called, which would then run without it.
    signal.throwIfAborted();
    const held = { request, lease };
    this.#held.add(held);
    request.markHeld();
    signal.addEventListener('abort', () => request.lose(signal.reason), { once: true });
    const worked = called(request, lease);
    request.processed.resolve();
    await Promise.race([worked.catch(() => {}), request.lost.promise]);
    this.#held.delete(held);
    await new Promise<void>((released) =>
      this.#enqueue(lease.name, () => this.#release(lease).finally(released)),
    );
    // When the lock was stolen or lost, even if only the release found that out, the promise is rejected already.
    request.resolve(worked);
  }

  /**
   * Releases a lease. The lease's signal reports a loss. Where the store gives no answer, core reports it, the ttl ends the
   * lock, and the request has the outcome of its callback.
   */
  async #release(lease: Lease): Promise<void> {
    await lease.release().catch(() => {});
  }

  #lockOf({ resource, wanted: { mode } }: LockRequest): Lock {
    return mode === 'shared' ? this.#locks.readWriteLock(resource).read : this.#locks.lock(resource);
  }

  #queueOf(resource: string): WebLocksQueue {
    let queue = this.#queues.get(resource);
    if (queue === undefined) this.#queues.set(resource, (queue = new WebLocksQueue()));
    return queue;
  }

  #leaveQueue(request: LockRequest): void {
    const queue = this.#queues.get(request.resource);
    queue?.leave(request);
    if (queue?.isEmpty) this.#queues.delete(request.resource);
  }
}

/** The callback's result as a promise, rejected with what the callback throws. */
function called(
  { wanted: { callback, name, mode } }: LockRequest,
  lease: Lease | undefined,
): Promise<unknown> {
  const lock = lease === undefined ? null : makeLock({ name, mode, lease });
  return new Promise((resolve) => resolve(Reflect.apply(callback, undefined, [lock])));
}
