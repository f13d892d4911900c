import type { AcquireRequest, Attempt, Call, Grant, Standing } from '@locks/core/backend';
import { LineOfRuns } from './line-of-runs.ts';
import { Mutex } from './mutex.ts';
import { type Entry, lastMode, lose, newRun, type Run, serverModeOf } from './run.ts';
import type { ServerLock } from './server-lock.ts';
import type { Session } from './session.ts';
import type { Sessions } from './sessions.ts';

/**
 * One resource as this process sees it: its holders and its waiters, in runs. PostgreSQL queues the runs of all
 * processes; inside a run we hand the lock over ourselves, so the server's own re-entry never comes into play.
 */
export class ResourceQueue {
  /** As a rule one: every name that has this key. */
  readonly names = new Set<string>();
  readonly lock: ServerLock;
  /** Calls that are under way with this object. */
  users = 0;
  /** Given up here, and not yet on the server. */
  readonly leaving = new Set<Entry>();
  readonly #sessions: Sessions;
  readonly #steps = new Mutex();
  readonly #line: LineOfRuns;
  readonly #parked: () => void;
  #looking = false;

  /** `parked` is told when somebody has no connection to wait on: they depend on {@link lookAgain}. */
  constructor(lock: ServerLock, sessions: Sessions, parked: () => void) {
    this.lock = lock;
    this.#sessions = sessions;
    this.#parked = parked;
    this.#line = new LineOfRuns(lock, sessions, this.#steps);
  }

  get entries(): ReadonlyMap<string, Entry> {
    return this.#line.entries;
  }

  get runs(): readonly Run[] {
    return this.#line.runs;
  }

  get unused(): boolean {
    return this.users === 0 && this.runs.length === 0 && this.entries.size === 0 && !this.#steps.busy;
  }

  async attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    // Not as a step: when the server is away, all who wait are told together, not one after the other.
    const opening = this.#sessions.main();
    const main = opening instanceof Promise ? await opening : opening;
    // Nothing is asked of the server for a wait, so whether it is still there is found out here.
    if (this.entries.has(request.acquisitionId)) await main.fresh();
    return await this.#steps.run(() => this.#attempt(request, enqueue, () => call.now()));
  }

  /** The grant when the turn comes; `undefined` when it is worth while to ask again, or the caller gave up. */
  awaitTurn(request: AcquireRequest, call: Call): Promise<Grant | undefined> {
    const entry = this.entries.get(request.acquisitionId);
    if (entry === undefined || entry.grant !== undefined) return Promise.resolve(entry?.grant);
    return new Promise((resolve) => {
      const { signal } = call;
      let timer: NodeJS.Timeout | undefined;
      const wake = (grant: Grant | undefined): void => {
        if (entry.wake === wake) entry.wake = undefined;
        signal?.removeEventListener('abort', giveUp);
        clearTimeout(timer);
        resolve(grant);
      };
      const giveUp = (): void => wake(undefined);
      entry.wake?.(undefined);
      entry.wake = wake;
      signal?.addEventListener('abort', giveUp, { once: true });
      if (signal?.aborted === true) giveUp();
      if (signal === undefined && Number.isFinite(call.deadline)) {
        timer = setTimeout(giveUp, Math.max(0, call.deadline - call.now()));
        timer.unref();
      }
    });
  }

  /** Whether the id held it. Afterwards it neither holds nor waits. */
  leave(acquisitionId: string): Promise<boolean> {
    return this.#steps.run(() => this.#leave(acquisitionId));
  }

  downgrade(acquisitionId: string): Promise<Standing> {
    return this.#steps.run(async () => {
      const entry = this.entries.get(acquisitionId);
      if (entry?.grant === undefined) return { status: 'lost', reason: 'session-lost' };
      entry.mode = { kind: 'shared' };
      await this.#line.serve(entry.run);
      return this.entries.has(acquisitionId)
        ? { status: 'held' }
        : { status: 'lost', reason: 'session-lost' };
    });
  }

  /** Ends holds behind their holders' backs. */
  async forceRelease(acquisitionIds: readonly string[]): Promise<void> {
    for (const id of acquisitionIds) {
      const entry = this.entries.get(id);
      if (entry?.grant === undefined) continue;
      lose(entry, 'force-released');
      await this.leave(id);
    }
  }

  /** The session is gone, and with it what it held and where it stood. */
  sessionLost(session: Session): void {
    for (const run of this.runs.filter((one) => one.session === session)) this.#line.drop(run);
  }

  /** Everybody who waits asks again: to learn whether the server is there. */
  hint(): void {
    for (const entry of this.entries.values()) entry.wake?.(undefined);
  }

  /** Whether somebody waits here without a connection to stand in the server's queue with. */
  get isParked(): boolean {
    return this.runs.some(isParked);
  }

  /** A connection came free. */
  unpark(): void {
    const parked = this.runs.find(isParked);
    if (parked === undefined || this.#steps.busy) return;
    this.#steps.run(() => this.#line.stand(parked)).catch(() => this.hint());
  }

  /** Tries for whoever is parked; whether it got the lock. */
  async lookAgain(): Promise<boolean> {
    const parked = this.runs.find(isParked);
    if (parked === undefined || this.#looking) return false;
    this.#looking = true;
    try {
      await this.#steps.run(() => this.#line.tryParked(parked, true));
    } catch {
      // They ask, and are told what is wrong with the server.
      this.hint();
    } finally {
      this.#looking = false;
    }
    return parked.state === 'held';
  }

  async #attempt(request: AcquireRequest, enqueue: boolean, now: () => number): Promise<Attempt> {
    const known = this.entries.get(request.acquisitionId);
    if (known !== undefined) return this.#standing(request);
    const opening = this.#sessions.main();
    const main = opening instanceof Promise ? await opening : opening;
    const mode = serverModeOf(request.mode);
    const entry: Omit<Entry, 'run'> = {
      request,
      now,
      arrivedAt: performance.now(),
      mode: request.mode,
      grant: undefined,
      grantedAt: 0,
      lost: undefined,
      wake: undefined,
    };
    const last = this.runs.at(-1);
    if (last === undefined) {
      const token = await this.lock.try(main, mode);
      if (token !== undefined) {
        const run = this.#line.push(newRun('held', mode));
        this.#line.settleOn(run, main);
        return { status: 'granted', grant: this.#line.admit({ ...entry, run }, token) };
      }
    } else {
      const atOnce =
        mode === 'shared' &&
        last.serverMode === 'shared' &&
        last.waiting.length === 0 &&
        this.runs.every(({ state }) => state === 'held');
      // Behind a reader only readers: the lock is never strengthened.
      const fits = enqueue && (mode === 'shared' || lastMode(last) === 'exclusive');
      if ((atOnce || fits) && (await this.#line.isLastInLine(main, last))) {
        this.#line.join({ ...entry, run: last });
        if (last.state === 'held') await this.#line.serve(last);
        return this.#standing(request);
      }
    }
    if (!enqueue) return { status: 'contended' };
    const run = this.#line.push(newRun('parked', mode));
    this.#line.join({ ...entry, run });
    await this.#line.stand(run);
    run.placed = true;
    if (isParked(run)) this.#parked();
    return this.#standing(request);
  }

  #standing({ acquisitionId }: AcquireRequest): Attempt {
    const entry = this.entries.get(acquisitionId);
    if (entry?.grant !== undefined) return { status: 'granted', grant: entry.grant };
    return { status: 'contended' };
  }

  async #leave(acquisitionId: string): Promise<boolean> {
    const entry = this.entries.get(acquisitionId);
    if (entry === undefined) return false;
    const { run } = entry;
    this.#line.entries.delete(acquisitionId);
    const held = run.holders.delete(entry);
    if (!held) run.waiting.splice(run.waiting.indexOf(entry), 1);
    if (run.holders.size + run.waiting.length > 0) {
      const follow = run.state === 'held' ? this.#line.serve(run) : this.#line.weakenPlace(run);
      await follow.catch(ignore);
      return held;
    }
    this.leaving.add(entry);
    try {
      if (run.state === 'held') return (await this.#line.unlock(run)) && held;
      await this.#line.withdraw(run);
      return held;
    } finally {
      this.leaving.delete(entry);
    }
  }
}

function isParked({ state }: Run): boolean {
  return state === 'parked';
}

function ignore(): void {
  // The session tells its end itself.
}
