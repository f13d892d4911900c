import { setTimeout as delay } from 'node:timers/promises';
import type { Grant } from '@locks/core/backend';
import type { Mutex } from './mutex.ts';
import { type Entry, grantTo, lose, neededMode, newRun, type Run } from './run.ts';
import type { ServerLock } from './server-lock.ts';
import type { Session } from './session.ts';
import type { Sessions } from './sessions.ts';

/** A cancelled wait that does not end by then is ended with its connection. */
const WITHDRAW_MS = 1_000;
const QUICK_LOOKS = 5;

/** The runs of one resource, first come first, and what becomes of them on the server. Its methods are steps of the mutex. */
export class LineOfRuns {
  readonly lock: ServerLock;
  readonly entries = new Map<string, Entry>();
  readonly runs: Run[] = [];
  readonly #sessions: Sessions;
  readonly #steps: Mutex;

  constructor(lock: ServerLock, sessions: Sessions, steps: Mutex) {
    this.lock = lock;
    this.#sessions = sessions;
    this.#steps = steps;
  }

  /** Whether nobody else stands behind this run, so that who comes now may come into it. */
  async isLastInLine(main: Session, last: Run): Promise<boolean> {
    if (last.session === undefined) return true;
    const waitedFor = await this.lock.isWaitedFor(main, last.session);
    return !waitedFor && last.state !== 'over';
  }

  /** Takes a place in the server's queue, if there is a connection for it. Comes back when the place is fixed. */
  async stand(run: Run): Promise<void> {
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
        (token) => this.#steps.run(() => this.#turnCame(run, token)),
        () => this.#steps.run(() => this.#turnFailed(run)),
      )
      .catch((error: unknown) => session.end(error));
    for (let looks = 1; run.state === 'queued' && session.blocked; looks += 1) {
      const main = await this.#sessions.main();
      if (await this.lock.isQueued(main, session)) return;
      if (looks > QUICK_LOOKS) await delay(1);
    }
    if (run.state === 'queued') await turn.then((token) => this.#turnCame(run, token), ignore);
  }

  async #turnCame(run: Run, token: string | null): Promise<void> {
    if (run.state !== 'queued') return;
    run.state = 'held';
    await this.serve(run, token);
  }

  /** The server ended the wait: cancelled by an administrator, or out of memory. */
  async #turnFailed(run: Run): Promise<void> {
    const { session } = run;
    if (run.state !== 'queued' || session === undefined) return;
    this.drop(run);
    await this.#clear(session, run);
  }

  /** Grants what fits at the head of the run, or gives the lock back when there is nobody left. */
  async serve(run: Run, token?: string | null): Promise<void> {
    const { session } = run;
    let minted = token;
    while (run.state === 'held' && session !== undefined) {
      if (run.holders.size + run.waiting.length === 0) {
        await this.unlock(run);
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
      this.admit(head, minted);
      minted = undefined;
    }
  }

  async unlock(run: Run): Promise<boolean> {
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
    // Not waited for: the release is done.
    if (next?.state === 'parked') this.#steps.run(() => this.tryParked(next)).catch(ignore);
    return had;
  }

  /** Without a connection to wait on: whoever comes when nobody waits gets it. `together`: many are tried in this moment. */
  async tryParked(run: Run, together = false): Promise<void> {
    await this.stand(run);
    // In order: not while another run of ours stands before it.
    if (run.state !== 'parked' || this.runs[0] !== run) return;
    const main = await this.#sessions.main();
    const token = await this.lock.try(main, run.serverMode, together);
    if (token === undefined) return;
    run.state = 'held';
    this.settleOn(run, main);
    await this.serve(run, token);
  }

  /** Nobody in the run waits any more: the server forgets the wait, and what it may have granted meanwhile. */
  async withdraw(run: Run): Promise<void> {
    const { session, turn } = run;
    this.#end(run);
    if (session === undefined || turn === undefined) return;
    try {
      const main = await this.#sessions.main();
      if (session.blocked) await this.lock.cancel(main, session);
      const ended = turn.then(ignore, ignore);
      const outcome = await Promise.race([ended, delay(WITHDRAW_MS, 'late' as const, { ref: false })]);
      if (outcome === 'late') throw new Error('a cancelled wait did not end');
    } catch (error) {
      return session.end(error);
    }
    // The grant and the cancel may have met: then the server has both said no and locked.
    await this.#clear(session, run);
  }

  /**
   * After writers gave up, only readers may be left in a run that asks the server for more than they need. A weaker request
   * stands at the end of the server's queue, so the old place is given up only once nobody else can stand between the two.
   */
  async weakenPlace(run: Run): Promise<void> {
    if (run.serverMode === 'shared' || neededMode(run) === 'exclusive') return;
    if (run.state === 'parked') run.serverMode = 'shared';
    if (run.state !== 'queued') return;
    const weaker = newRun('parked', 'shared');
    this.runs.splice(this.runs.indexOf(run) + 1, 0, weaker);
    if (!(await this.#standNextTo(run, weaker).catch(() => false))) return this.withdraw(weaker);
    weaker.placed = true;
    for (const entry of run.waiting.splice(0)) {
      entry.run = weaker;
      weaker.waiting.push(entry);
    }
    await this.withdraw(run);
  }

  async #standNextTo(run: Run, weaker: Run): Promise<boolean> {
    await this.stand(weaker);
    const { session } = run;
    if (session === undefined || weaker.session === undefined) return false;
    const main = await this.#sessions.main();
    const between = await this.lock.isWaitedFor(main, session, weaker.session);
    return !between && session.blocked && run.state === 'queued' && weaker.state === 'queued';
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

  push(run: Run): Run {
    this.runs.push(run);
    return run;
  }

  settleOn(run: Run, session: Session): void {
    run.session = session;
    this.#sessions.carry(session);
    if (!session.alive) this.drop(run);
  }

  join(entry: Entry): void {
    this.entries.set(entry.request.acquisitionId, entry);
    entry.run.waiting.push(entry);
  }

  admit(entry: Entry, token: string | null): Grant {
    const { run } = entry;
    this.entries.set(entry.request.acquisitionId, entry);
    run.holders.add(entry);
    const grant = grantTo(entry, run.session as Session, token);
    entry.wake?.(grant);
    return grant;
  }

  /** Out of the queue, together with everybody in it. */
  drop(run: Run): void {
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
