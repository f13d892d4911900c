import { setTimeout as delay } from 'node:timers/promises';
import type { AcquireRequest, Attempt, Call, Grant, Standing } from '@locks/core/backend';
import { Mutex } from './mutex.ts';
import { type Entry, grantTo, lastMode, lose, neededMode, newRun, type Run, serverModeOf } from './run.ts';
import type { ServerLock } from './server-lock.ts';
import type { Session } from './session.ts';
import type { Sessions } from './sessions.ts';

/** How often somebody without a connection to wait on looks again. */
const PARKED_RETRY_MS = 100;
/** A cancelled wait that does not end by then is ended with its connection. */
const WITHDRAW_MS = 1_000;
const QUICK_LOOKS = 5;

/**
 * One resource as this process sees it: its holders and its waiters, in runs. PostgreSQL queues the runs of all
 * processes; inside a run we hand the lock over ourselves, so the server's own re-entry never comes into play.
 */
export class ResourceQueue {
  /** As a rule one: every name that has this key. */
  readonly names = new Set<string>();
  readonly lock: ServerLock;
  readonly entries = new Map<string, Entry>();
  readonly runs: Run[] = [];
  /** Calls that are under way with this object. */
  users = 0;
  /** Given up here, and not yet on the server. */
  readonly leaving = new Set<Entry>();
  readonly #sessions: Sessions;
  readonly #steps = new Mutex();

  constructor(lock: ServerLock, sessions: Sessions) {
    this.lock = lock;
    this.#sessions = sessions;
  }

  get unused(): boolean {
    return this.users === 0 && this.runs.length === 0 && this.entries.size === 0 && !this.#steps.busy;
  }

  async attempt(request: AcquireRequest, enqueue: boolean, call: Call): Promise<Attempt> {
    // Not as a step: when the server is away, all who wait are told together, not one after the other.
    const main = await this.#sessions.main();
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
      await this.#serve(entry.run);
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
    for (const run of this.runs.filter((one) => one.session === session)) this.#drop(run);
  }

  /** Everybody who waits asks again: to learn whether the server is there. */
  hint(): void {
    for (const entry of this.entries.values()) entry.wake?.(undefined);
  }

  /** A connection came free. */
  unpark(): void {
    const parked = this.runs.find(({ state }) => state === 'parked');
    if (parked === undefined || this.#steps.busy) return;
    this.#steps.run(() => this.#stand(parked)).catch(() => this.hint());
  }

  async #attempt(request: AcquireRequest, enqueue: boolean, now: () => number): Promise<Attempt> {
    const known = this.entries.get(request.acquisitionId);
    if (known !== undefined) return await this.#again(known);
    const main = await this.#sessions.main();
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
        const run = this.#push(newRun('held', mode));
        this.#settleOn(run, main);
        return { status: 'granted', grant: this.#admit({ ...entry, run }, token) };
      }
    } else {
      const atOnce =
        mode === 'shared' &&
        last.serverMode === 'shared' &&
        last.waiting.length === 0 &&
        this.runs.every(({ state }) => state === 'held');
      // Behind a reader only readers: the lock is never strengthened.
      const fits = enqueue && (mode === 'shared' || lastMode(last) === 'exclusive');
      if ((atOnce || fits) && (await this.#isLastInLine(main, last))) {
        this.#join({ ...entry, run: last });
        if (last.state === 'held') await this.#serve(last);
        return this.#standing(request);
      }
    }
    if (!enqueue) return { status: 'contended' };
    const run = this.#push(newRun('parked', mode));
    this.#join({ ...entry, run });
    await this.#stand(run);
    run.placed = true;
    return this.#standing(request);
  }

  async #again(entry: Entry): Promise<Attempt> {
    const { run, request } = entry;
    if (entry.grant === undefined) {
      const due = performance.now() - run.triedAt >= PARKED_RETRY_MS * 0.7;
      if (run.state === 'parked' && due) await this.#tryParked(run);
      run.placed = true;
    }
    return this.#standing(request);
  }

  #standing({ acquisitionId }: AcquireRequest): Attempt {
    const entry = this.entries.get(acquisitionId);
    if (entry?.grant !== undefined) return { status: 'granted', grant: entry.grant };
    if (entry?.run.state === 'parked') return { status: 'contended', retryAfterMs: PARKED_RETRY_MS };
    return { status: 'contended' };
  }

  /** Whether nobody else stands behind this run, so that who comes now may come into it. */
  async #isLastInLine(main: Session, last: Run): Promise<boolean> {
    if (last.session === undefined) return true;
    const waitedFor = await this.lock.isWaitedFor(main, last.session);
    return !waitedFor && last.state !== 'over';
  }

  /** Takes a place in the server's queue, if there is a connection for it. Comes back when the place is fixed. */
  async #stand(run: Run): Promise<void> {
    // Without a connection, as with a full server, it stays parked.
    const session =
      run.state === 'parked' ? await this.#sessions.forWait().catch(() => undefined) : undefined;
    if (session === undefined) return;
    run.session = session;
    run.state = 'queued';
    const turn = this.lock.wait(session, run.serverMode);
    run.turn = turn;
    turn
      .then(
        () => this.#steps.run(() => this.#turnCame(run)),
        () => this.#steps.run(() => this.#turnFailed(run)),
      )
      .catch((error: unknown) => session.end(error));
    for (let looks = 1; run.state === 'queued' && session.blocked; looks += 1) {
      const main = await this.#sessions.main();
      if (await this.lock.isQueued(main, session)) return;
      if (looks > QUICK_LOOKS) await delay(1);
    }
    if (run.state === 'queued') await turn.then(() => this.#turnCame(run), ignore);
  }

  async #turnCame(run: Run): Promise<void> {
    const { session } = run;
    if (run.state !== 'queued' || session === undefined) return;
    let token: string | null;
    try {
      // The server granted it to a process that may have stood still since (docs/spec.md §7.7).
      token = await this.lock.confirm(session);
    } catch (error) {
      return session.end(error);
    }
    if ((run.state as Run['state']) === 'over') return;
    run.state = 'held';
    await this.#serve(run, token);
  }

  /** The server ended the wait: cancelled by an administrator, or out of memory. */
  async #turnFailed(run: Run): Promise<void> {
    const { session } = run;
    if (run.state !== 'queued' || session === undefined) return;
    this.#drop(run);
    await this.#clear(session, run);
  }

  /** Grants what fits at the head of the run, or gives the lock back when there is nobody left. */
  async #serve(run: Run, token?: string | null): Promise<void> {
    const { session } = run;
    let minted = token;
    while (run.state === 'held' && session !== undefined) {
      if (run.holders.size + run.waiting.length === 0) {
        await this.#unlock(run);
        return;
      }
      if (run.serverMode === 'exclusive' && neededMode(run) === 'shared') {
        await this.lock.weaken(session).catch((error: unknown) => session.end(error));
        run.serverMode = 'shared';
        continue;
      }
      const head = run.waiting[0];
      if (head === undefined || !fitsBeside(head, run)) return;
      try {
        minted ??= await this.lock.nextToken(session);
      } catch {
        // They ask again, and are told why there is no token.
        for (const entry of run.waiting.splice(0)) this.#forget(entry);
        continue;
      }
      if (run.waiting[0] !== head) continue;
      run.waiting.shift();
      this.#admit(head, minted);
      minted = undefined;
    }
  }

  async #leave(acquisitionId: string): Promise<boolean> {
    const entry = this.entries.get(acquisitionId);
    if (entry === undefined) return false;
    const { run } = entry;
    this.entries.delete(acquisitionId);
    const held = run.holders.delete(entry);
    if (!held) run.waiting.splice(run.waiting.indexOf(entry), 1);
    if (run.holders.size + run.waiting.length > 0) {
      if (run.state === 'held') await this.#serve(run).catch(ignore);
      return held;
    }
    this.leaving.add(entry);
    try {
      if (run.state === 'held') return (await this.#unlock(run)) && held;
      await this.#withdraw(run);
      return held;
    } finally {
      this.leaving.delete(entry);
    }
  }

  async #unlock(run: Run): Promise<boolean> {
    const { session } = run;
    this.#end(run);
    if (session === undefined) return false;
    let had = true;
    try {
      had = await this.lock.unlock(session, run.serverMode);
    } catch (error) {
      if (!session.alive) throw error;
      await this.#clear(session, run);
      return true;
    }
    this.#sessions.unload(session);
    const next = this.runs[0];
    if (next?.state === 'parked') await this.#tryParked(next).catch(ignore);
    return had;
  }

  /** Without a connection to wait on: whoever comes when nobody waits gets it. */
  async #tryParked(run: Run): Promise<void> {
    run.triedAt = performance.now();
    await this.#stand(run);
    if (run.state !== 'parked' || this.runs[0] !== run) return;
    const main = await this.#sessions.main();
    const token = await this.lock.try(main, run.serverMode);
    if (token === undefined) return;
    run.state = 'held';
    this.#settleOn(run, main);
    await this.#serve(run, token);
  }

  /** Nobody in the run waits any more: the server forgets the wait, and what it may have granted meanwhile. */
  async #withdraw(run: Run): Promise<void> {
    const { session, turn } = run;
    this.#end(run);
    if (session === undefined || turn === undefined) return;
    try {
      const main = await this.#sessions.main();
      if (session.blocked)
        await main.ask({ text: 'SELECT pg_cancel_backend($1::int4)', values: [session.pid] });
      const outcome = await Promise.race([
        turn.then(
          () => 'granted' as const,
          () => 'cancelled' as const,
        ),
        delay(WITHDRAW_MS, 'late' as const, { ref: false }),
      ]);
      if (outcome === 'late') throw new Error('a cancelled wait did not end');
      if (outcome === 'granted') await this.lock.confirm(session);
    } catch (error) {
      return session.end(error);
    }
    // The grant and the cancel may have met: then the server has both said no and locked.
    await this.#clear(session, run);
  }

  /** Makes sure that a session does not hold what nobody knows of, or ends it. */
  async #clear(session: Session, run: Run): Promise<void> {
    try {
      await this.lock.giveBackIfHeld(session, run.serverMode);
      this.#sessions.unload(session);
    } catch (error) {
      session.end(error);
    }
  }

  #push(run: Run): Run {
    this.runs.push(run);
    return run;
  }

  #settleOn(run: Run, session: Session): void {
    run.session = session;
    this.#sessions.carry(session);
    if (!session.alive) this.#drop(run);
  }

  #join(entry: Entry): void {
    this.entries.set(entry.request.acquisitionId, entry);
    entry.run.waiting.push(entry);
  }

  #admit(entry: Entry, token: string | null): Grant {
    const { run } = entry;
    this.entries.set(entry.request.acquisitionId, entry);
    run.holders.add(entry);
    const grant = grantTo(entry, run.session as Session, token);
    entry.wake?.(grant);
    return grant;
  }

  /** Out of the queue, together with everybody in it. */
  #drop(run: Run): void {
    this.#end(run);
    for (const entry of run.holders) {
      this.entries.delete(entry.request.acquisitionId);
      lose(entry, 'session-lost');
    }
    for (const entry of run.waiting.splice(0)) this.#forget(entry);
  }

  #forget(entry: Entry): void {
    this.entries.delete(entry.request.acquisitionId);
    entry.wake?.(undefined);
  }

  #end(run: Run): void {
    run.state = 'over';
    const index = this.runs.indexOf(run);
    if (index >= 0) this.runs.splice(index, 1);
  }
}

function fitsBeside(head: Entry, run: Run): boolean {
  if (run.holders.size === 0) return true;
  if (head.mode.kind !== 'shared') return false;
  return [...run.holders].every(({ mode }) => mode.kind === 'shared');
}

function ignore(): void {
  // The session tells its end itself.
}
