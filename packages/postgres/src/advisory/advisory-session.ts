import { CombinedClock, withTimeLimit } from '@locks/core/backend';
import type { OwnConnection, Statement, TextRow } from '../driver/postgres-driver.ts';
import { noResult } from '../driver/postgres-statements.ts';
import { codeOf } from '../driver/server-error.ts';
import { LockSteps } from './lock-steps.ts';
import { SessionEndedError, type SessionStatements } from './session-statement.ts';
import type { TokenSequence } from './token-sequence.ts';

/** The time after its last answer at which a connection stops keeping the process alive. */
const UNREF_MS = 10;
/** The time limit of a graceful end, before the connection is cut. */
const CLOSE_MS = 500;

interface PendingStatement {
  readonly statement: Statement;
  /** Whether the statement waits in the server's queue, and so has no time limit. */
  readonly unlimited: boolean;
  resolve(rows: readonly TextRow[]): void;
  reject(error: unknown): void;
}

/** The parts that a session is made of. */
export interface SessionSettings {
  /** A connection that was set up, and the server process at its other end. */
  readonly connection: OwnConnection;
  readonly pid: number;
  /** The clock of the session, and its time before the first statement that the server answered. */
  readonly clock: CombinedClock;
  readonly setUpAt: number;
  readonly timeoutMs: number;
  readonly tokens: TokenSequence | undefined;
  /** Makes the probe, which is sent every third of the timeout. */
  readonly probe: () => Statement;
  /** Called with the answer to a probe. */
  readonly probed: (rows: readonly TextRow[]) => void;
}

/**
 * One session with the server: its statements one after the other, its heartbeat, and its end. The server ends a session
 * that is silent for `timeoutMs`. We count it as ended two thirds of that after the *sending* of the last statement that was
 * answered.
 */
export class AdvisorySession implements SessionStatements {
  readonly pid: number;
  readonly connection: OwnConnection;
  readonly steps: LockSteps;
  /** The number of groups that have their lock, or their wait, on this session, and the time since which none has. */
  groups = 0;
  idleSince = performance.now();
  /** Whether a wait occupies this session in the server's queue: no other statement can be answered before its end. */
  blocked = false;
  /** Whether we have asked for the end, so that the end is no loss. */
  closing = false;
  #ended: SessionEndedError | undefined;
  readonly #settings: SessionSettings;
  /** The sending time of the last statement that the server has answered. */
  #answeredAt: number;
  readonly #waiting: PendingStatement[] = [];
  #sent: PendingStatement | undefined;
  readonly #heartbeat: NodeJS.Timeout;
  readonly #listeners: (() => void)[] = [];
  #probing: Promise<void> | undefined;
  #probedAt = performance.now();
  /** Whether the open connection keeps the process alive. */
  #isRef = true;
  #unrefSoon = false;

  constructor(settings: SessionSettings) {
    const { connection, pid, timeoutMs, setUpAt, tokens } = settings;
    this.connection = connection;
    this.pid = pid;
    this.steps = new LockSteps(this, tokens);
    this.#settings = settings;
    this.#answeredAt = setUpAt;
    connection.onEnd((why) => this.end(why));
    this.#heartbeat = setInterval(() => this.#beat(), timeoutMs / 12);
    this.#heartbeat.unref();
    // A lease does not keep a process alive; a statement does (docs/spec.md §4.5).
    this.#setRef(false);
  }

  get alive(): boolean {
    return this.#ended === undefined;
  }

  /** The time in milliseconds for which the session is certain to live; 0 or less: nobody may rely on it. */
  get remainingMs(): number {
    if (this.#ended !== undefined) return Number.NEGATIVE_INFINITY;
    return this.#validMs - this.#elapsedMs;
  }

  get #elapsedMs(): number {
    return this.#settings.clock.now() - this.#answeredAt;
  }

  get #validMs(): number {
    return (this.#settings.timeoutMs * 2) / 3;
  }

  onEnd(listener: () => void): void {
    this.#listeners.push(listener);
  }

  ask(statement: Statement): Promise<readonly TextRow[]> {
    return new Promise((resolve, reject) => this.#put(statement, false, resolve, reject));
  }

  /** Asks for a wait in the server's queue, whose answer may take any time. */
  askWithoutLimit(statement: Statement): Promise<readonly TextRow[]> {
    return new Promise((resolve, reject) => this.#put(statement, true, resolve, reject));
  }

  put(
    statement: Statement,
    resolve: (rows: readonly TextRow[]) => void,
    reject: (error: unknown) => void,
  ): void {
    this.#put(statement, false, resolve, reject);
  }

  #put(
    statement: Statement,
    unlimited: boolean,
    resolve: (rows: readonly TextRow[]) => void,
    reject: (error: unknown) => void,
  ): void {
    if (this.#ended !== undefined) return reject(this.#ended);
    this.#waiting.push({ statement, unlimited, resolve, reject });
    if (this.#sent === undefined) this.#send();
  }

  /** Resolves when the server has answered a statement that was sent after this call, or shortly before it. */
  async confirm(): Promise<void> {
    if (this.alive && this.#elapsedMs < this.#settings.timeoutMs / 6) return;
    await this.#probe();
  }

  #probe(): Promise<void> {
    this.#probedAt = performance.now();
    this.#probing ??= this.ask(this.#settings.probe())
      .then((rows) => this.#settings.probed(rows))
      .finally(() => {
        this.#probing = undefined;
      });
    return this.#probing;
  }

  /** Ends the session at once and for good: its holds count as lost. */
  end(why: unknown): void {
    if (this.#ended !== undefined) return;
    const cause = why instanceof Error ? why.message : String(why);
    this.#ended = new SessionEndedError(`the session with PostgreSQL ended: ${cause}`, { cause: why });
    clearInterval(this.#heartbeat);
    const unanswered = [this.#sent, ...this.#waiting.splice(0)];
    this.#sent = undefined;
    this.connection.cut();
    for (const listener of this.#listeners) listener();
    for (const statement of unanswered) statement?.reject(this.#ended);
  }

  /** Ends the session by a message, so that the server releases its locks at once. */
  async close(): Promise<void> {
    if (this.#ended !== undefined) return;
    this.closing = true;
    clearInterval(this.#heartbeat);
    this.#setRef(true);
    await withTimeLimit(this.connection.end(), CLOSE_MS, ignore);
    this.end(new Error('it was closed'));
  }

  #send(): void {
    const pending = this.#waiting.shift();
    this.#sent = pending;
    if (pending === undefined) return;
    const sentAt = this.#settings.clock.now();
    this.#setRef(!pending.unlimited);
    this.connection.send(pending.statement, (error, { rows } = noResult) => {
      if (error && isFatal(error)) return this.end(error);
      if (!this.#accepts(pending, sentAt)) return;
      if (error) pending.reject(error);
      else pending.resolve(rows);
    });
  }

  /** Returns whether the answer to a statement counts. If so, the next statement is sent. */
  #accepts(pending: PendingStatement, sentAt: number): boolean {
    // The end of the session has rejected the statement already.
    if (this.#ended !== undefined) return false;
    // A wait says nothing about how long the session lives: its lock counts as held only when the next statement, which is
    // counted from its own sending, is answered.
    if (pending.unlimited) this.#answeredAt = this.#settings.clock.now();
    // An answer that came too late does not revive a session: others may hold its locks by now (docs/spec.md §8.2).
    else if (this.#expired()) return false;
    else this.#answeredAt = Math.max(this.#answeredAt, sentAt);
    this.#sent = undefined;
    if (this.#waiting.length > 0) this.#send();
    else this.#unrefLater();
    return true;
  }

  #beat(): void {
    // A session that waits in the queue holds nothing. The main session's probe asks whether it still exists.
    if (this.#sent?.unlimited === true || this.#expired()) return;
    // The probe is sent beside other statements: they prove that the session lives, but do not answer what the probe asks for.
    if (performance.now() - this.#probedAt >= this.#settings.timeoutMs / 3) this.#probe().catch(ignore);
  }

  /** Lets the process end, after a delay, because most answers are followed by another statement at once. */
  #unrefLater(): void {
    if (this.#unrefSoon) return;
    this.#unrefSoon = true;
    setTimeout(() => {
      this.#unrefSoon = false;
      if (this.#sent === undefined && this.#ended === undefined && !this.closing) this.#setRef(false);
    }, UNREF_MS).unref();
  }

  #setRef(isRef: boolean): void {
    if (isRef === this.#isRef) return;
    this.#isRef = isRef;
    this.connection.setRef(isRef);
  }

  #expired(): boolean {
    if (this.#ended !== undefined) return true;
    if (this.remainingMs > 0) return false;
    this.end(new Error(`no answer within ${Math.round(this.#validMs)} ms`));
    return true;
  }
}

/** Whether the connection broke, or the server ended it with this error (57P: by an administrator, or after a silence). */
function isFatal(error: Error): boolean {
  const code = codeOf(error);
  return !/^[0-9A-Z]{5}$/.test(code) || code.startsWith('57P');
}

function ignore(): void {
  // A session that ended reports that to its listeners, and any other error is an answer too.
}
