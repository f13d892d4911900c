// One file, since a grant, its renewal and its end are one state of the process that leads.
import {
  type AcquireRequest,
  type Attempt,
  type Call,
  type Clock,
  type Grant,
  type Holder,
  type InspectOptions,
  type LockBackend,
  refuseAfterClose,
  type RenewItem,
  type ResourceState,
  type RenewalStatus,
  renewalStatusOf,
} from '@locks/core/backend';
import { capabilitiesOf, type CohortCapabilities } from './cohort-capabilities.ts';
import { CohortLease, type Turn, turnIn } from './cohort-lease.ts';
import { type CohortLimits, type CohortOptions, resolveCohort } from './cohort-options.ts';
import { holdersWithTurnTokens, stateWithTurnTokens, atStore, withTurnToken } from './cohort-tokens.ts';
import { type CohortWaiter, ProcessQueue, type StoreEntry } from './process-queue.ts';

const CONTENDED = { status: 'contended' } as const;
const OVER = { status: 'lost', reason: 'taken-over' } as const;
/** Time limit for the abandon of a grant that nobody waits for, in milliseconds. */
const ABANDON_MS = 1_000;
const SHORTER: RenewalStatus = {
  status: 'unknown',
  error: new Error('another process made the grant, and would not know that its lease ends sooner'),
};

/** A backend whose leases serve several acquisitions of one process. */
export type CohortBackend = LockBackend<CohortCapabilities>;

// setup: import { createLocks } from '@locks/core'; import { cohortBackend } from '@locks/cohort';
// setup: import { redisBackend } from '@locks/redis-ioredis'; import type { Redis } from 'ioredis'; declare const client: Redis;
/**
 * Lets one process pass its lease on to its next waiter without the store: a number of turns, for a short time. Lock cohorting,
 * after D. Dice, V. J. Marathe and N. Shavit, "Lock Cohorting: A General Technique for Designing NUMA Locks" (PPoPP 2012), with
 * processes in the place of NUMA nodes. Only acquires of exclusive locks that wait take part; all else goes to the store as it is.
 *
 * Every client of the store must use a cohort backend, or none: the fencing tokens of both are not comparable. Its guarantees,
 * and its limits to the order, stand in docs/spec.md §18.
 *
 * @param backend - with order `fifo`; it is closed with this one
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 * @example
 * ```ts
 * const locks = createLocks(cohortBackend(redisBackend(client), { turns: 64, withinMs: 20 }));
 * ```
 */
export function cohortBackend(backend: LockBackend, options?: CohortOptions): CohortBackend {
  return new PassingBackend(backend, resolveCohort(backend, options));
}

class PassingBackend implements CohortBackend {
  readonly spec = 'locks-backend/1';
  readonly name: string;
  readonly capabilities: CohortCapabilities;
  readonly clock?: Clock;
  readonly releaseBudgetMs?: number;
  readonly attemptMany?: NonNullable<LockBackend['attemptMany']>;
  readonly downgrade?: NonNullable<LockBackend['downgrade']>;
  readonly resize?: NonNullable<LockBackend['resize']>;
  readonly list?: NonNullable<LockBackend['list']>;
  readonly forceRelease?: NonNullable<LockBackend['forceRelease']>;
  readonly ping?: NonNullable<LockBackend['ping']>;
  readonly prepare?: NonNullable<LockBackend['prepare']>;
  readonly connectionError?: NonNullable<LockBackend['connectionError']>;
  readonly isClientClosed?: NonNullable<LockBackend['isClientClosed']>;
  readonly #inner: LockBackend;
  readonly #limits: CohortLimits;
  readonly #queues = new Map<string, ProcessQueue>();
  /** The turns that acquisitions had, by the request that core asked with. */
  readonly #turns = new WeakMap<AcquireRequest, Turn>();
  /**
   * The request to abandon at the store for a waiter that gave up; `undefined`: nothing, since another waiter goes on with the
   * request, or there was none.
   */
  readonly #gaveUpAs = new WeakMap<AcquireRequest, AcquireRequest | undefined>();

  constructor(inner: LockBackend, limits: CohortLimits) {
    this.#inner = inner;
    this.#limits = limits;
    this.name = `${inner.name} cohort`;
    this.capabilities = capabilitiesOf(inner.capabilities, limits);
    if (inner.clock !== undefined) this.clock = inner.clock;
    if (inner.releaseBudgetMs !== undefined) this.releaseBudgetMs = inner.releaseBudgetMs;
    if (inner.attemptMany !== undefined) this.attemptMany = this.#attemptMany.bind(this);
    if (inner.downgrade !== undefined) this.downgrade = this.#downgrade.bind(this);
    if (inner.resize !== undefined) this.resize = inner.resize.bind(inner);
    if (inner.list !== undefined) this.list = this.#list.bind(this);
    if (inner.forceRelease !== undefined) this.forceRelease = this.#forceRelease.bind(this);
    if (inner.ping !== undefined) this.ping = inner.ping.bind(inner);
    if (inner.prepare !== undefined) this.prepare = inner.prepare.bind(inner);
    if (inner.connectionError !== undefined) this.connectionError = inner.connectionError.bind(inner);
    if (inner.isClientClosed !== undefined) this.isClientClosed = inner.isClientClosed.bind(inner);
    refuseAfterClose(this);
  }

  async attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    const { resource, acquisitionId } = request;
    const turn = this.#turnOf(request);
    if (turn !== undefined) {
      const again = isOver(turn) ? CONTENDED : await this.#attemptAgain(turn, request, call);
      if (again !== undefined) return again;
    }
    const queue = this.#queues.get(resource);
    // A steal ends the lease for all who still wait for a turn with it (docs/spec.md §18.6).
    if (request.steal === true) queue?.close();
    if (request.steal === true || request.mode.kind !== 'exclusive' || (!enqueue && queue === undefined))
      return this.#attemptAtStore(request, enqueue, call);
    // The waiters of this process came before (docs/spec.md §7.4).
    if (!enqueue) return CONTENDED;
    const joined = queue ?? this.#startQueue(resource);
    const waiter = joined.get(acquisitionId) ?? joined.join(request);
    return joined.isLeader(waiter) ? this.#attemptAsLeader(joined, waiter, call) : CONTENDED;
  }

  async awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    const turn = this.#turnOf(request);
    if (turn !== undefined) return isOver(turn) ? undefined : turn.grant;
    const queue = this.#queues.get(request.resource);
    const waiter = queue?.get(request.acquisitionId);
    if (queue === undefined || waiter === undefined) {
      const grant = await this.#inner.awaitTurn?.(request, call);
      return grant && withTurnToken(grant);
    }
    if (!queue.isLeader(waiter)) return waiter.wait.begin(call);
    const { entry } = queue;
    // The waiter became the leader after its last attempt.
    if (entry === undefined || entry.mustAttempt) return undefined;
    return this.#awaitAsLeader(queue, waiter, entry, call);
  }

  async abandon(request: AcquireRequest, call: Call): Promise<void> {
    const { resource, acquisitionId } = request;
    const turn = this.#turnOf(request);
    const queue = this.#queues.get(resource);
    if (turn !== undefined) {
      if (isOver(turn)) return;
      const { lease } = turn;
      const abandoned = this.#inner.abandon(lease.grant.request, call);
      queue?.close(lease);
      return abandoned;
    }
    const waiter = queue?.get(acquisitionId);
    if (waiter !== undefined) this.#gaveUpAs.set(request, queue?.leave(waiter)?.request);
    const known = this.#gaveUpAs.has(request) ? this.#gaveUpAs.get(request) : request;
    if (known !== undefined) await this.#inner.abandon(known, call);
  }

  async renew(items: readonly RenewItem[], call: Call): Promise<readonly RenewalStatus[]> {
    const sentAt = call.now();
    // A turn that is over renews nothing: its lease may serve another acquisition.
    const renewalStatuses = items.map((item) => {
      if (isOver(turnIn(item.grant.request))) return OVER;
      return wouldEndTurns(item) ? SHORTER : undefined;
    });
    const sent = items.filter((_, index) => renewalStatuses[index] === undefined);
    const atTheStore = sent.map(({ grant, ttlMs }) => {
      const lease = turnIn(grant.request)?.lease;
      // The waiters of its process want the ttl that the lease had (docs/spec.md §18.4).
      if (lease !== undefined && ttlMs !== lease.grant.request.ttlMs)
        this.#queues.get(grant.request.resource)?.close(lease);
      return { grant: lease?.grant ?? atStore(grant) ?? grant, ttlMs };
    });
    const answer = atTheStore.length === 0 ? [] : await this.#inner.renew(atTheStore, call);
    for (const [index, { grant, ttlMs }] of sent.entries()) {
      const lease = turnIn(grant.request)?.lease;
      const renewalStatus = renewalStatusOf(answer, index);
      if (renewalStatus.status === 'held') lease?.renewed(sentAt, renewalStatus.validForMs ?? ttlMs);
      if (renewalStatus.status !== 'lost' || lease === undefined) continue;
      // The lease ended at the store: nobody else gets a turn with it (docs/spec.md §18.6).
      this.#queues.get(grant.request.resource)?.close(lease);
    }
    let next = 0;
    return renewalStatuses.map((renewalStatus) => renewalStatus ?? renewalStatusOf(answer, next++));
  }

  async release(grant: Grant, call: Call): Promise<'released' | 'not-held' | 'unknown'> {
    const turn = turnIn(grant.request);
    if (turn === undefined) return this.#inner.release(atStore(grant) ?? grant, call);
    // The turn ended before, and another acquisition may hold the lease (docs/spec.md §2.8).
    if (isOver(turn)) return 'not-held';
    const { lease } = turn;
    const queue = this.#queues.get(grant.request.resource);
    if (queue?.passOn(lease, call.now()) === true) return 'released';
    const released = this.#inner.release(lease.grant, call);
    queue?.close(lease);
    return released;
  }

  async inspect(resource: string, call: Call, options?: InspectOptions): Promise<ResourceState> {
    return stateWithTurnTokens(await this.#inner.inspect(resource, call, { ...options, waiters: false }));
  }

  isRetryable(error: unknown): boolean {
    return this.#inner.isRetryable(error);
  }

  close(): Promise<void> {
    for (const queue of this.#queues.values()) queue.close();
    return this.#inner.close();
  }

  #turnOf(request: AcquireRequest): Turn | undefined {
    return this.#turns.get(request) ?? turnIn(request);
  }

  #startQueue(resource: string): ProcessQueue {
    const queue = new ProcessQueue(
      this.#limits,
      () => {
        if (this.#queues.get(resource) === queue) this.#queues.delete(resource);
      },
      (request, turn) => this.#turns.set(request, turn),
    );
    this.#queues.set(resource, queue);
    return queue;
  }

  /** Attempts at the store, for a request that does not take part in a cohort. */
  async #attemptAtStore(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    const attempt = await this.#inner.attempt(request, enqueue, call);
    return attempt.status === 'granted'
      ? { status: 'granted', grant: withTurnToken(attempt.grant) }
      : attempt;
  }

  /**
   * Attempts again for an acquisition that has its turn: the store knows whether it still holds (docs/spec.md §2.1). `undefined`:
   * its lease ended, so that the acquisition waits as one that had no turn.
   */
  async #attemptAgain(turn: Turn, request: AcquireRequest, call: Call): Promise<Attempt | undefined> {
    const { lease } = turn;
    const attempt = await this.#inner.attempt(lease.grant.request, false, call);
    if (attempt.status === 'conflict') return attempt;
    const isHeld = attempt.status === 'granted' && attempt.grant.fencingToken === lease.grant.fencingToken;
    if (isHeld) {
      const { countedFrom, validForMs = request.ttlMs } = attempt.grant;
      return { status: 'granted', grant: { ...turn.grant, countedFrom, validForMs } };
    }
    // Another client may have held since: a token of the lease that ended would be stale (docs/spec.md §6.1).
    lease.current = undefined;
    this.#turns.delete(request);
    this.#queues.get(request.resource)?.close(lease);
    if (attempt.status !== 'granted') return undefined;
    const next = new CohortLease(attempt.grant, call.now(), 0).begin(request);
    this.#turns.set(request, next);
    return { status: 'granted', grant: next.grant };
  }

  /** Attempts at the store for all waiters of this process. */
  async #attemptAsLeader(queue: ProcessQueue, waiter: CohortWaiter, call: Call): Promise<Attempt> {
    const entry = queue.ask(waiter);
    entry.isUnderWay = true;
    entry.mustAttempt = false;
    let attempt: Attempt;
    try {
      attempt = await this.#inner.attempt(entry.request, true, call);
    } finally {
      entry.isUnderWay = false;
    }
    switch (attempt.status) {
      case 'granted': {
        this.#granted(queue, entry, attempt.grant, call);
        const turn = this.#turns.get(waiter.request);
        return turn === undefined ? CONTENDED : { status: 'granted', grant: turn.grant };
      }
      case 'full':
      case 'conflict':
        if (entry.state === 'asked') queue.refused(waiter);
        return attempt;
      case 'contended':
        return attempt;
      default:
        return attempt satisfies never;
    }
  }

  /** Waits at the store for all waiters of this process. The grant goes to the first of them, which may be another. */
  #awaitAsLeader(
    queue: ProcessQueue,
    waiter: CohortWaiter,
    entry: StoreEntry,
    call: Call,
  ): Promise<Grant | undefined> {
    const turn = waiter.wait.begin(call);
    const isAwaited = (): boolean => waiter.wait.call === call;
    this.#inner.awaitTurn?.(entry.request, call).then(
      (grant) => {
        if (grant !== undefined) this.#granted(queue, entry, grant, call);
        else if (isAwaited()) waiter.wait.end();
      },
      (error: unknown) => {
        if (isAwaited()) waiter.wait.fail(error);
      },
    );
    return turn;
  }

  #granted(queue: ProcessQueue, entry: StoreEntry, grant: Grant, call: Call): void {
    if (entry.state === 'asked') return queue.granted(grant, () => call.now());
    if (entry.state === 'granted') return;
    // Nobody waits for the grant any more: its id must not hold (docs/spec.md §2.3).
    const late: Call = { now: () => call.now(), deadline: call.now() + ABANDON_MS };
    this.#inner.abandon(entry.request, late).catch(() => undefined);
  }

  /** Attempts all in one step. Names with waiters of this process are contended: those came before (docs/spec.md §7.4). */
  async #attemptMany(requests: readonly AcquireRequest[], call: Call): Promise<readonly Grant[] | undefined> {
    if (requests.some(({ resource }) => this.#queues.has(resource))) return undefined;
    const grants = await this.#inner.attemptMany?.(requests, call);
    return grants?.map(withTurnToken);
  }

  /** Downgrades a lease, which serves no other acquisition from then on: readers may enter beside it at once. */
  async #downgrade(grant: Grant, call: Call): Promise<RenewalStatus> {
    const lease = turnIn(grant.request)?.lease;
    this.#queues.get(grant.request.resource)?.close(lease);
    const renewalStatus = await this.#inner.downgrade?.(lease?.grant ?? atStore(grant) ?? grant, call);
    return renewalStatusOf([renewalStatus], 0);
  }

  async *#list(prefix: string, call: Call): AsyncGenerator<ResourceState> {
    for await (const state of this.#inner.list?.(prefix, call) ?? []) yield stateWithTurnTokens(state);
  }

  /** Ends the lease for all who still wait for a turn with it. */
  async #forceRelease(
    resource: string,
    expectedId: string | undefined,
    call: Call,
  ): Promise<readonly Holder[]> {
    this.#queues.get(resource)?.close();
    return holdersWithTurnTokens((await this.#inner.forceRelease?.(resource, expectedId, call)) ?? []);
  }
}

/**
 * Whether a renewal for another instance ends the lease sooner than that instance believes: it would pass on a lease that ends before the
 * turn does (docs/spec.md §18.9).
 */
function wouldEndTurns({ grant, ttlMs }: RenewItem): boolean {
  const { mode, ttlMs: grantedMs } = grant.request;
  return grant.atStore === undefined && mode.kind === 'exclusive' && ttlMs < grantedMs;
}

/** Whether a turn is over: another acquisition has had the lease since. */
function isOver(turn: Turn | undefined): boolean {
  return turn !== undefined && turn.lease.current !== turn;
}
