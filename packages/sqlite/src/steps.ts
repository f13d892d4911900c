import {
  type AcquireRequest,
  areInConflict,
  type Attempt,
  type Call,
  type Conflict,
  type Grant,
  holdsAlone,
  type InspectOptions,
  type LockMode,
  type ResourceState,
} from '@locks/core/backend';
import { nameBytes, type SqliteRow, toHolder, toMode, tokenOf, toWaiter } from './columns.ts';
import type { LockFile } from './lock-file.ts';
import type { SqliteClient } from './sqlite-client.ts';
import { capacityBeside, SqliteHolds } from './sqlite-holds.ts';
import { HEARTBEAT_EVERY_MS, modeInQueue, SqliteQueue } from './sqlite-queue.ts';

/** The state of a resource that the poller reads. */
export interface ResourceTurn {
  /** The ids whose turn it is, in order, of all processes; `undefined`: the queue is empty. */
  readonly ready: readonly string[] | undefined;
  /** Whether the queue has a waiter whose process has ended. */
  readonly hasEnded: boolean;
  /** The time in milliseconds until the next hold ends, or the next process counts as silent, if nothing else happens. */
  readonly changesInMs: number;
  /** A text that differs when turns have changed. */
  readonly mark: string;
}

/** A lease that lasts longer is seen by all who wait before it ends: they look at the file at every heartbeat. */
const SHORT_TTL_MS = 2 * HEARTBEAT_EVERY_MS;

interface Waiting {
  readonly request: AcquireRequest;
  readonly call: Call;
}

/** The file's answer to a request. */
type AttemptAnswer =
  | { readonly status: 'held'; readonly hold: SqliteRow }
  | Fits
  | { readonly status: 'contended' }
  | Conflict;

interface Fits {
  readonly status: 'fits';
  /** The mode that is granted: that of the queue where the request waited, since a resize may have changed it. */
  readonly mode: LockMode;
  readonly from: 'outside' | 'queue';
  readonly hasExpired: boolean;
  /** Whether the holds that there are end in the same transaction. */
  readonly steals: boolean;
}

/** The steps of the protocol. Each runs inside a transaction that the caller has begun, at once and to its end. */
export class Steps {
  readonly #file: LockFile;
  readonly holds: SqliteHolds;
  readonly queue: SqliteQueue;

  constructor(file: LockFile, client: SqliteClient) {
    this.#file = file;
    this.holds = new SqliteHolds(file);
    this.queue = new SqliteQueue(file, client);
  }

  attempt(request: AcquireRequest, enqueue: boolean, call: Call): Attempt {
    const resource = nameBytes(request.resource);
    const countedFrom = call.now();
    const now = this.#file.clock.nowMicros();
    const answer = this.#ask(request, resource, now);
    switch (answer.status) {
      case 'held':
        return { status: 'granted', grant: this.#heldBefore(request, answer.hold, countedFrom, now) };
      case 'fits':
        return { status: 'granted', grant: this.#enter({ request, call }, resource, answer) };
      case 'contended':
        if (!enqueue) return answer;
        if (this.queue.hasReachedMaxWaiters(request, resource, now)) return { status: 'full' };
        this.queue.enqueue(request, resource, now);
        return answer;
      case 'conflict':
        return answer;
      default:
        return answer satisfies never;
    }
  }

  /** Attempts all requests or none: checks all first, then takes all, in one transaction. */
  attemptMany(requests: readonly AcquireRequest[], call: Call): readonly Grant[] | undefined {
    const countedFrom = call.now();
    const now = this.#file.clock.nowMicros();
    const entries: (() => Grant)[] = [];
    for (const request of requests) {
      const resource = nameBytes(request.resource);
      const answer = this.#ask(request, resource, now);
      if (answer.status === 'held') {
        entries.push(() => this.#heldBefore(request, answer.hold, countedFrom, now));
      } else if (answer.status === 'fits') {
        entries.push(() => this.#enter({ request, call }, resource, answer));
      } else {
        return undefined;
      }
    }
    return entries.map((enter) => enter());
  }

  #ask(request: AcquireRequest, resource: Uint8Array, now: number): AttemptAnswer {
    const { acquisitionId, mode } = request;
    const { live, hasExpired } = this.holds.read(resource, now);
    const hold = live && this.holds.own(resource, acquisitionId, now, live);
    if (hold !== undefined) return { status: 'held', hold };
    if (request.adopts !== undefined) {
      const isHeld =
        live !== undefined &&
        holdsAlone(live.mode) &&
        this.holds.own(resource, request.adopts, now, live) !== undefined;
      return isHeld
        ? { status: 'fits', mode, from: 'outside', hasExpired, steals: true }
        : { status: 'contended' };
    }
    // A steal ends those who hold, and no waits (docs/spec.md §17.2): beside an exclusive hold the queue would not be read.
    const beside = request.steal ? undefined : live;
    const capacity = capacityBeside(beside);
    const turns = this.queue.turns(resource, now, capacity);
    const living = beside?.mode ?? modeInQueue(turns);
    // A request that waits is never refused: a resize may have given it another limit than it asked for.
    if (living !== undefined && areInConflict(living, mode) && !this.queue.waits(acquisitionId, now)) {
      return { status: 'conflict', with: living };
    }
    if (request.steal) return { status: 'fits', mode, from: 'queue', hasExpired, steals: true };
    const ready = turns.ready.find((row) => row.acquisition_id === acquisitionId);
    if (ready !== undefined)
      return { status: 'fits', mode: toMode(ready), from: 'queue', hasExpired, steals: false };
    const nobodyWaits = turns.ready.length === 0 && turns.blocked === undefined;
    // A newcomer never overtakes a live queue (docs/spec.md §7.4), whatever capacity is left.
    if (nobodyWaits && capacity.take(mode))
      return { status: 'fits', mode, from: 'outside', hasExpired, steals: false };
    return { status: 'contended' };
  }

  #enter({ request, call }: Waiting, resource: Uint8Array, { mode, from, hasExpired, steals }: Fits): Grant {
    if (steals) this.holds.steal(resource, this.#file.clock.nowMicros());
    const grant = this.holds.grant(request, resource, call, mode, hasExpired);
    if (from === 'queue') this.queue.dequeue(request.acquisitionId);
    // Others look at the file so seldom that this lease may end unseen.
    if (request.ttlMs < SHORT_TTL_MS) this.queue.wakeHead(resource, this.#file.clock.nowMicros());
    return grant;
  }

  #heldBefore(request: AcquireRequest, hold: SqliteRow, countedFrom: number, now: number): Grant {
    const validForMs = (Number(hold.expires_at) - now) / 1000;
    return { request, fencingToken: tokenOf(hold), countedFrom, validForMs };
  }

  /**
   * Grants to all waiters of this process, which `find` finds, whose turn has come.
   *
   * @param isFreed - whether this transaction has freed capacity, so that the others whose turn has come must be woken
   */
  handOff(resource: string, find: (acquisitionId: string) => Waiting | undefined, isFreed: boolean): Grant[] {
    const bytes = nameBytes(resource);
    if (this.queue.isEmpty(bytes)) return [];
    const now = this.#file.clock.nowMicros();
    const { live, hasExpired } = this.holds.read(bytes, now);
    const { ready } = this.queue.turns(bytes, now, capacityBeside(live));
    const grants: Grant[] = [];
    const others: SqliteRow[] = [];
    for (const row of ready) {
      const waiting = find(String(row.acquisition_id));
      if (waiting === undefined) {
        others.push(row);
        continue;
      }
      const fits: Fits = { status: 'fits', mode: toMode(row), from: 'queue', hasExpired, steals: false };
      grants.push(this.#enter(waiting, bytes, fits));
    }
    // A step that grants something without having freed it was woken by one that woke the others too.
    if (isFreed || grants.length === 0) for (const row of others) this.queue.wake(row);
    return grants;
  }

  abandon({ resource, acquisitionId }: AcquireRequest): void {
    this.holds.drop(nameBytes(resource), acquisitionId);
    this.queue.dequeue(acquisitionId);
  }

  resize(resource: string, limit: number): { readonly status: 'set' } | Conflict {
    const bytes = nameBytes(resource);
    const now = this.#file.clock.nowMicros();
    const { live } = this.holds.read(bytes, now);
    const living = live?.mode ?? modeInQueue(this.queue.turns(bytes, now, capacityBeside(live)));
    if (living !== undefined && living.kind !== 'permit') return { status: 'conflict', with: living };
    this.holds.resize(bytes, limit);
    this.queue.resize(bytes, limit);
    return { status: 'set' };
  }

  inspect(resource: string, options?: InspectOptions): ResourceState {
    const { statements, clock } = this.#file;
    const bytes = nameBytes(resource);
    const now = clock.nowMicros();
    const waiting = options?.waiters === false ? [] : statements.queue.all(bytes, now);
    return {
      name: resource,
      holders: statements.holders.all(bytes, now).map((row) => toHolder(row, now)),
      waiters: waiting.map((row) => toWaiter(row, now)),
    };
  }

  /** Lists names in byte order, at most `limit`, starting with `from` or after it. */
  resourcesAfter(from: Uint8Array, inclusive: boolean, limit: number): Uint8Array[] {
    const { statements, clock } = this.#file;
    return statements.resourcesAfter
      .all(from, inclusive ? 1 : 0, clock.nowMicros(), limit)
      .map((row) => row.resource as Uint8Array);
  }

  /** Reads the turns of a resource, and writes nothing. */
  turn(resource: string): ResourceTurn {
    const bytes = nameBytes(resource);
    const now = this.#file.clock.nowMicros();
    const live = this.holds.summarize(bytes, now);
    const changesInMs = live === undefined ? Infinity : (live.endsAt - now) / 1000;
    if (live !== undefined && holdsAlone(live.mode)) {
      return { ready: [], hasEnded: false, changesInMs, mark: String(live.row.acquisition_id) };
    }
    const { ready, blocked } = this.queue.readTurns(bytes, now, capacityBeside(live));
    const seen = blocked === undefined ? ready : [...ready, blocked];
    const silentIn = seen.map((row) => (Number(row.alive_until) - now) / 1000);
    return {
      ready: seen.length === 0 ? undefined : ready.map((row) => String(row.acquisition_id)),
      hasEnded: seen.some((row) => this.queue.hasEnded(row)),
      changesInMs: Math.min(changesInMs, ...silentIn),
      mark: `${live?.holders ?? 0} ${seen[0]?.acquisition_id}`,
    };
  }

  heartbeat(): Set<string> {
    return this.queue.heartbeat(this.#file.clock.nowMicros());
  }

  /** Removes the rows that dead processes left. */
  sweep(): void {
    const now = this.#file.clock.nowMicros();
    this.queue.dropDead(now);
    this.holds.sweep(now);
  }
}
