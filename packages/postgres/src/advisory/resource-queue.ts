import {
  type AcquireRequest,
  type Attempt,
  type Call,
  type Grant,
  type RenewalStatus,
  TurnWait,
} from '@locks/core/backend';
import type { AdvisorySession } from './advisory-session.ts';
import type { AdvisorySessions } from './advisory-sessions.ts';
import type { ServerMode } from './lock-steps.ts';
import { Mutex } from './mutex.ts';
import type { ServerLock } from './server-lock.ts';
import {
  type AdvisoryAcquisition,
  lastMode,
  lose,
  neededMode,
  newGroup,
  serverModeOf,
  type SharedLockGroup,
} from './shared-lock-group.ts';
import { SharedLockGroups } from './shared-lock-groups.ts';

/**
 * One resource as this process sees it: its holders and its waiters, in groups. PostgreSQL queues the groups of all
 * processes. Inside a group this process hands the lock off itself, so a session never asks for a lock that it holds.
 */
export class ResourceQueue {
  /** All names with this key: usually one. */
  readonly names = new Set<string>();
  readonly lock: ServerLock;
  /** The number of calls that are using this object. */
  users = 0;
  /** The acquisitions that ended here while the server still has their lock or wait. */
  readonly leaving = new Set<AdvisoryAcquisition>();
  readonly #sessions: AdvisorySessions;
  readonly #mutex = new Mutex();
  readonly #groups: SharedLockGroups;
  readonly #parked: () => void;
  #trying = false;

  /** @param parked - called when a group has no session to wait on, and depends on {@link tryParked} */
  constructor(lock: ServerLock, sessions: AdvisorySessions, parked: () => void) {
    this.lock = lock;
    this.#sessions = sessions;
    this.#parked = parked;
    this.#groups = new SharedLockGroups(lock, sessions, this.#mutex);
  }

  get acquisitions(): ReadonlyMap<string, AdvisoryAcquisition> {
    return this.#groups.acquisitions;
  }

  get groups(): readonly SharedLockGroup[] {
    return this.#groups.groups;
  }

  get unused(): boolean {
    return this.users === 0 && this.groups.length === 0 && this.acquisitions.size === 0 && !this.#mutex.busy;
  }

  async attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    const arrivedAt = performance.now();
    // The session is opened outside the mutex: if the server is away, all calls fail together and not one after the other.
    const opening = this.#sessions.main();
    const main = opening instanceof Promise ? await opening : opening;
    // A repeated attempt of a waiter sends no statement, so `confirm()` asks whether the server is still there.
    if (this.acquisitions.has(request.acquisitionId)) await main.confirm();
    return await this.#mutex.run(() => this.#attempt(request, enqueue, () => call.now(), arrivedAt));
  }

  /** Resolves to the grant when the turn comes; `undefined`: the caller gave up, or should attempt again. */
  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    const acquisition = this.acquisitions.get(request.acquisitionId);
    if (acquisition === undefined || acquisition.grant !== undefined)
      return Promise.resolve(acquisition?.grant);
    return acquisition.wait.begin(call);
  }

  /** Ends the hold or the wait of an acquisition. Resolves to whether it held. */
  leave(acquisitionId: string): Promise<boolean> {
    return this.#mutex.run(() => this.#leave(acquisitionId));
  }

  downgrade(acquisitionId: string): Promise<RenewalStatus> {
    return this.#mutex.run(async () => {
      const acquisition = this.acquisitions.get(acquisitionId);
      if (acquisition?.grant === undefined) return { status: 'lost', reason: 'session-lost' };
      acquisition.mode = { kind: 'shared' };
      await this.#groups.serve(acquisition.group, undefined);
      return this.acquisitions.has(acquisitionId)
        ? { status: 'held' }
        : { status: 'lost', reason: 'session-lost' };
    });
  }

  /** Ends holds without the request of their holders. */
  async forceRelease(acquisitionIds: readonly string[]): Promise<void> {
    for (const id of acquisitionIds) {
      const acquisition = this.acquisitions.get(id);
      if (acquisition?.grant === undefined) continue;
      lose(acquisition, 'force-released');
      await this.leave(id);
    }
  }

  /** A session ended: so did the locks that it held and its wait in the queue. */
  sessionLost(session: AdvisorySession): void {
    for (const group of this.groups.filter((one) => one.session === session)) this.#groups.drop(group);
  }

  /** Lets every waiter attempt again, to find out whether the server is there. */
  hint(): void {
    for (const acquisition of this.acquisitions.values()) acquisition.wait.end();
  }

  /** Whether a group here has no session to wait on in the server's queue. */
  get isParked(): boolean {
    return this.groups.some(isParked);
  }

  /** A session became free to wait on. */
  unpark(): void {
    const parked = this.groups.find(isParked);
    if (parked === undefined || this.#mutex.busy) return;
    this.#mutex.run(() => this.#groups.enqueue(parked)).catch(() => this.hint());
  }

  /** Tries the lock for the first parked group. Resolves to whether the group got it. */
  async tryParked(): Promise<boolean> {
    const parked = this.groups.find(isParked);
    if (parked === undefined || this.#trying) return false;
    this.#trying = true;
    try {
      await this.#mutex.run(() => this.#groups.tryParked(parked, true));
    } catch {
      // Each waiter attempts again, and gets the error of the server.
      this.hint();
    } finally {
      this.#trying = false;
    }
    return parked.state === 'held';
  }

  async #attempt(
    request: AcquireRequest,
    enqueue: boolean,
    now: () => number,
    arrivedAt: number,
  ): Promise<Attempt> {
    const known = this.acquisitions.get(request.acquisitionId);
    if (known !== undefined) return this.#attemptOf(request);
    const opening = this.#sessions.main();
    const main = opening instanceof Promise ? await opening : opening;
    const mode = serverModeOf(request.mode);
    const acquisition: Omit<AdvisoryAcquisition, 'group'> = {
      request,
      now,
      arrivedAt,
      mode: request.mode,
      wait: new TurnWait(),
      grant: undefined,
      grantedAt: 0,
      lost: undefined,
    };
    const last = this.groups.at(-1);
    if (last === undefined) {
      const triedAt = performance.now();
      const token = await this.lock.try(main, mode, false);
      if (token !== undefined) {
        const group = this.#groups.add(newGroup('held', mode));
        this.#groups.hold(group, main, triedAt);
        return { status: 'granted', grant: this.#groups.admit({ ...acquisition, group }, token) };
      }
    } else {
      const atOnce =
        mode === 'shared' &&
        last.serverMode === 'shared' &&
        last.waiting.length === 0 &&
        this.groups.every(({ state }) => state === 'held');
      const fits = enqueue && mayJoin(last, mode);
      if ((atOnce || fits) && (await this.#groups.isLastInQueue(main, last, arrivedAt))) {
        this.#groups.join({ ...acquisition, group: last });
        if (last.state === 'held') await this.#groups.serve(last, undefined);
        return this.#attemptOf(request);
      }
    }
    if (!enqueue) return { status: 'contended' };
    const group = this.#groups.add(newGroup('parked', mode));
    this.#groups.join({ ...acquisition, group });
    await this.#groups.enqueue(group);
    group.positioned = true;
    if (isParked(group)) this.#parked();
    return this.#attemptOf(request);
  }

  #attemptOf({ acquisitionId }: AcquireRequest): Attempt {
    const acquisition = this.acquisitions.get(acquisitionId);
    if (acquisition?.grant !== undefined) return { status: 'granted', grant: acquisition.grant };
    return { status: 'contended' };
  }

  async #leave(acquisitionId: string): Promise<boolean> {
    const acquisition = this.acquisitions.get(acquisitionId);
    if (acquisition === undefined) return false;
    const { group } = acquisition;
    this.#groups.acquisitions.delete(acquisitionId);
    const held = group.holders.delete(acquisition);
    if (!held) group.waiting.splice(group.waiting.indexOf(acquisition), 1);
    if (group.holders.size + group.waiting.length > 0) {
      if (group.state === 'held') await this.#groups.serve(group, undefined).catch(ignore);
      if (group.state === 'parked') group.serverMode = neededMode(group);
      return held;
    }
    this.leaving.add(acquisition);
    try {
      if (group.state === 'held') return (await this.#groups.unlock(group)) && held;
      await this.#groups.withdraw(group);
      return held;
    } finally {
      this.leaving.delete(acquisition);
    }
  }
}

/**
 * Whether an acquisition may join the last group. Only readers join behind a reader, since the lock of a group is never
 * strengthened. While the group waits on the server, no reader joins its writers: if these gave up, it would wait on with
 * their exclusive request.
 */
function mayJoin(last: SharedLockGroup, mode: ServerMode): boolean {
  if (last.state === 'queued') return mode === last.serverMode;
  return mode === 'shared' || lastMode(last) === 'exclusive';
}

function isParked({ state }: SharedLockGroup): boolean {
  return state === 'parked';
}

function ignore(): void {
  // A session that ended reports that to its listeners.
}
