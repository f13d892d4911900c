import { setTimeout as delay } from 'node:timers/promises';
import { Capacity, type Grant, withTimeLimit } from '@locks/core/backend';
import type { AdvisorySession } from './advisory-session.ts';
import type { AdvisorySessions } from './advisory-sessions.ts';
import type { Mutex } from './mutex.ts';
import type { ServerLock } from './server-lock.ts';
import {
  type AdvisoryAcquisition,
  grantTo,
  lose,
  neededMode,
  newGroup,
  serverModeOf,
  type SharedLockGroup,
} from './shared-lock-group.ts';

/** The time limit for a cancelled wait to end; after that its session is ended. */
const CANCEL_MS = 1_000;
/** The number of times that the server is asked without a pause whether a wait is in its queue. */
const QUICK_QUERIES = 5;

/** The groups of one resource in the order of their arrival, and their locks on the server. Callers hold the mutex. */
export class SharedLockGroups {
  readonly lock: ServerLock;
  readonly acquisitions = new Map<string, AdvisoryAcquisition>();
  readonly groups: SharedLockGroup[] = [];
  readonly #sessions: AdvisorySessions;
  readonly #mutex: Mutex;

  constructor(lock: ServerLock, sessions: AdvisorySessions, mutex: Mutex) {
    this.lock = lock;
    this.#sessions = sessions;
    this.#mutex = mutex;
  }

  /**
   * Returns whether nobody waits behind this group on the server who was there before `arrivedAt`, so that a newcomer may join it.
   * One question answers for all that have arrived before it: a thousand newcomers ask once.
   */
  async isLastInQueue(main: AdvisorySession, last: SharedLockGroup, arrivedAt: number): Promise<boolean> {
    if (last.session === undefined || arrivedAt < last.lastAt) return true;
    const askedAt = performance.now();
    if (await this.lock.isWaitedFor(main, last.session)) return false;
    last.lastAt = askedAt;
    return last.state !== 'over';
  }

  /** Waits in the server's queue, if there is a session for it. Resolves when the position there is fixed. */
  async enqueue(group: SharedLockGroup): Promise<void> {
    // Without a free session, or on a full server, the group stays parked.
    const session =
      group.state === 'parked' ? await this.#sessions.forWait().catch(() => undefined) : undefined;
    if (session === undefined) return;
    const readers = this.#splitReaders(group);
    group.session = session;
    group.state = 'queued';
    group.lastAt = performance.now();
    const wait = this.lock.wait(session, group.serverMode);
    group.serverWait = wait;
    wait
      .then(
        (token) => this.#mutex.run(() => this.#granted(group, token)),
        () => this.#mutex.run(() => this.#waitFailed(group)),
      )
      .catch((error: unknown) => session.end(error));
    await this.#untilQueued(group, session);
    if (group.state === 'queued' && !session.blocked)
      await wait.then((token) => this.#granted(group, token), ignore);
    if (readers !== undefined) await this.enqueue(readers);
  }

  /** Resolves when the server has the wait of a group in its queue, or has ended it. */
  async #untilQueued(group: SharedLockGroup, session: AdvisorySession): Promise<void> {
    for (let queries = 1; group.state === 'queued' && session.blocked; queries += 1) {
      const main = await this.#sessions.main();
      if (await this.lock.isQueued(main, session)) return;
      if (queries > QUICK_QUERIES) await delay(1);
    }
  }

  async #granted(group: SharedLockGroup, token: string | null): Promise<void> {
    if (group.state !== 'queued') return;
    group.state = 'held';
    await this.serve(group, token);
  }

  /** Handles the end of a wait by the server: an administrator cancelled it, or the server is out of memory. */
  async #waitFailed(group: SharedLockGroup): Promise<void> {
    const { session } = group;
    if (group.state !== 'queued' || session === undefined) return;
    this.drop(group);
    await this.#clear(session, group);
  }

  /**
   * Grants the lock to the head of the group as long as the head fits, or releases it when the group is empty.
   *
   * @param token - the token that came with the lock, or `null` without tokens; `undefined`: one is drawn for the head
   */
  async serve(group: SharedLockGroup, token: string | null | undefined): Promise<void> {
    const { session } = group;
    let nextToken = token;
    while (group.state === 'held' && session !== undefined) {
      if (group.holders.size + group.waiting.length === 0) {
        await this.unlock(group);
        return;
      }
      if (group.serverMode === 'exclusive' && neededMode(group) === 'shared') {
        await this.lock.weaken(session).catch((error: unknown) => session.end(error));
        group.serverMode = 'shared';
        continue;
      }
      const head = group.waiting[0];
      if (head === undefined || !fitsBeside(head, group)) return;
      try {
        nextToken ??= await this.lock.nextToken(session);
      } catch {
        // Each waiter attempts again, and gets the error that explains why there is no token.
        for (const acquisition of group.waiting.splice(0)) this.#forget(acquisition);
        continue;
      }
      if (group.waiting[0] !== head) continue;
      group.waiting.shift();
      this.admit(head, nextToken);
      nextToken = undefined;
    }
  }

  async unlock(group: SharedLockGroup): Promise<boolean> {
    const { session } = group;
    this.#end(group);
    if (session === undefined) return false;
    let had = true;
    try {
      had = await this.lock.unlock(session, group.serverMode);
    } catch (error) {
      if (!session.alive) throw error;
      await this.#clear(session, group);
      return true;
    }
    this.#sessions.unload(session);
    const next = this.groups[0];
    // The next group is not awaited: the release itself is done.
    if (next?.state === 'parked') this.#mutex.run(() => this.tryParked(next, false)).catch(ignore);
    return had;
  }

  /**
   * Tries the lock for a group that has no session to wait on.
   *
   * @param together - whether more groups are tried in this iteration of the event loop
   */
  async tryParked(group: SharedLockGroup, together: boolean): Promise<void> {
    await this.enqueue(group);
    // An earlier group of this process goes first.
    if (group.state !== 'parked' || this.groups[0] !== group) return;
    const main = await this.#sessions.main();
    const triedAt = performance.now();
    const token = await this.lock.try(main, group.serverMode, together);
    if (token === undefined) return;
    group.state = 'held';
    this.hold(group, main, triedAt);
    await this.serve(group, token);
  }

  /** Cancels the wait of an empty group, and releases the lock if the server has granted it meanwhile. */
  async withdraw(group: SharedLockGroup): Promise<void> {
    const { session, serverWait } = group;
    this.#end(group);
    if (session === undefined || serverWait === undefined) return;
    try {
      const main = await this.#sessions.main();
      if (session.blocked) await this.lock.cancel(main, session);
      await withTimeLimit(serverWait.then(ignore, ignore), CANCEL_MS, () => {
        throw new Error('a cancelled wait did not end');
      });
    } catch (error) {
      return session.end(error);
    }
    // A cancel can meet the grant: then the statement has failed and the lock is held all the same.
    await this.#clear(session, group);
  }

  /** Moves the readers of a parked group behind its writers into a parked group of their own, for a request of their own. */
  #splitReaders(group: SharedLockGroup): SharedLockGroup | undefined {
    const first = group.waiting.findIndex(({ mode }) => serverModeOf(mode) !== group.serverMode);
    if (first < 0) return undefined;
    const readers = newGroup('parked', 'shared');
    readers.positioned = group.positioned;
    this.groups.splice(this.groups.indexOf(group) + 1, 0, readers);
    readers.waiting.push(...group.waiting.splice(first));
    for (const acquisition of readers.waiting) acquisition.group = readers;
    return readers;
  }

  /** Releases a lock that the session may hold without our knowledge, or ends the session. */
  async #clear(session: AdvisorySession, group: SharedLockGroup): Promise<void> {
    try {
      await this.lock.unlockIfHeld(session, group.serverMode);
      this.#sessions.unload(session);
    } catch (error) {
      session.end(error);
    }
  }

  add(group: SharedLockGroup): SharedLockGroup {
    this.groups.push(group);
    return group;
  }

  /** @param triedAt - the time, on `performance.now()`, before the lock was tried */
  hold(group: SharedLockGroup, session: AdvisorySession, triedAt: number): void {
    group.session = session;
    group.lastAt = triedAt;
    this.#sessions.carry(session);
    if (!session.alive) this.drop(group);
  }

  join(acquisition: AdvisoryAcquisition): void {
    this.acquisitions.set(acquisition.request.acquisitionId, acquisition);
    acquisition.group.waiting.push(acquisition);
  }

  admit(acquisition: AdvisoryAcquisition, token: string | null): Grant {
    const { group } = acquisition;
    this.acquisitions.set(acquisition.request.acquisitionId, acquisition);
    group.holders.add(acquisition);
    const grant = grantTo(acquisition, group.session as AdvisorySession, token);
    acquisition.wait.end(grant);
    return grant;
  }

  /** Removes a group and all its acquisitions. */
  drop(group: SharedLockGroup): void {
    this.#end(group);
    for (const acquisition of group.holders) {
      this.acquisitions.delete(acquisition.request.acquisitionId);
      lose(acquisition, 'session-lost');
    }
    for (const acquisition of group.waiting.splice(0)) this.#forget(acquisition);
  }

  #forget(acquisition: AdvisoryAcquisition): void {
    this.acquisitions.delete(acquisition.request.acquisitionId);
    acquisition.wait.end();
  }

  #end(group: SharedLockGroup): void {
    group.state = 'over';
    const index = this.groups.indexOf(group);
    if (index >= 0) this.groups.splice(index, 1);
  }
}

function fitsBeside(head: AdvisoryAcquisition, group: SharedLockGroup): boolean {
  return Capacity.beside([...group.holders].map(({ mode }) => mode)).fits(head.mode);
}

function ignore(): void {
  // A session that ended reports that to its listeners.
}
