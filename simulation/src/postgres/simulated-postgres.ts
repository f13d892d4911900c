import type { World } from '../kernel/world.ts';
import {
  type EmbeddedPostgres,
  sortNotifications,
  type SqlValue,
  type TableTexts,
  USUAL,
} from './embedded-postgres.ts';
import { type Answer, type Outcome, PostgresError } from './wire-format.ts';

/** The status of a session as `ReadyForQuery` tells it: outside of a transaction, in one, in one that has failed. */
export type TransactionStatus = 'I' | 'T' | 'E';

/** A statement as it was sent. */
export interface SentStatement {
  readonly text: string;
  readonly values: readonly SqlValue[];
  /** The names whose rows the statement may lock, as the server writes them. */
  readonly names: readonly string[];
}

/** A statement of an open transaction, and when and where in the sequence it was carried out. */
interface Executed extends SentStatement {
  readonly now: string;
  readonly number: string;
}

/** Called once, when the server has carried out a statement, or has refused it. */
export type Executing = (result: Outcome | PostgresError, status: TransactionStatus) => void;

/** One connection as the server sees it. */
export class ServerSession {
  readonly pid: number;
  readonly notify: (channel: string, payload: string) => void;
  readonly channels = new Set<string>();
  /** The advisory locks that it holds until it ends. */
  readonly keys = new Set<string>();
  readonly settings = new Map<string, string>();
  status: TransactionStatus = 'I';
  transactionStart = '';
  /** Whether its transaction began read-only. */
  isReadOnly = false;
  /** What the open transaction has done, to be done again whenever somebody looks. */
  done: readonly Executed[] = [];
  isOver = false;

  constructor(pid: number, notify: ServerSession['notify']) {
    this.pid = pid;
    this.notify = notify;
  }
}

interface Waiting {
  readonly session: ServerSession;
  readonly statement: SentStatement;
  readonly executing: Executing;
}

export interface SimulatedPostgresOptions {
  readonly engine: EmbeddedPostgres;
  /** How much faster than true time its clock runs. */
  readonly drift: number;
  /** Called after a statement that has changed something, and after a commit. */
  written(statements: readonly SentStatement[], tables: TableTexts): void;
}

const READ_ONLY = 'default_transaction_read_only';
const FIRST_PID = 100;

/**
 * A server with several sessions over one PGlite. Each statement outside of a transaction is one step. What an open transaction does is
 * undone after each of its statements, and done again, at the same times and with the same numbers, when it goes on or commits: so
 * nobody else sees it before. Whoever wants a row that it has locked waits.
 */
export class SimulatedPostgres {
  readonly #world: World;
  readonly #options: SimulatedPostgresOptions;
  readonly #sessions = new Set<ServerSession>();
  /** Who has locked the rows of a name: a session, or an operator until a time. */
  readonly #lockedBy = new Map<string, ServerSession | 'operator'>();
  #waiting: Waiting[] = [];
  /** What the tables held after each write, the oldest first. */
  readonly #history: { readonly at: number; readonly tables: TableTexts }[] = [];
  #lastMicros = 0;
  #lastPid = FIRST_PID;
  isReadOnly = false;

  constructor(world: World, options: SimulatedPostgresOptions) {
    this.#world = world;
    this.#options = options;
    this.#hasStarted();
    this.#history.push({ at: 0, tables: options.engine.read() });
  }

  /** What the tables hold. */
  get tables(): TableTexts {
    return this.#history.at(-1)?.tables ?? [];
  }

  micros(at = this.#world.now): number {
    return Math.floor((1_790_000_000_000 + at * (1 + this.#options.drift)) * 1_000);
  }

  /** Whether a living session holds this advisory lock. */
  isLocked(key: string): boolean {
    return [...this.#sessions].some(({ keys }) => keys.has(key));
  }

  open(notify: ServerSession['notify']): ServerSession {
    const session = new ServerSession((this.#lastPid += 1), notify);
    this.#sessions.add(session);
    return session;
  }

  /** A session is over: what it has not committed is undone, and its locks are free. */
  end(session: ServerSession): void {
    if (session.isOver) return;
    session.isOver = true;
    this.#sessions.delete(session);
    this.#waiting = this.#waiting.filter((waiting) => waiting.session !== session);
    if (session.keys.size > 0) this.#tellKeys();
    this.#transactionIsOver(session);
  }

  restart(): void {
    for (const session of [...this.#sessions]) this.end(session);
    this.#hasStarted();
  }

  /** Takes back what was written at the time `since` and later. Returns whether that was anything. */
  loseSince(since: number): boolean {
    const kept = Math.max(1, this.#history.findLastIndex(({ at }) => at < since) + 1);
    const lost = this.#history.splice(kept);
    if (lost.length > 0) this.#options.engine.write(this.tables);
    return lost.length > 0;
  }

  /** Somebody's transaction locks the rows of a name for so long. */
  lockRows(name: string, ms: number): void {
    if (this.#lockedBy.has(name)) return;
    this.#lockedBy.set(name, 'operator');
    this.#world.schedule(this.#world.now + ms, () => {
      this.#lockedBy.delete(name);
      this.#goOn();
    });
  }

  execute(session: ServerSession, statement: SentStatement, executing: Executing): void {
    if (session.isOver) return;
    const isBlocked = statement.names.some((name) => {
      const owner = this.#lockedBy.get(name);
      return owner !== undefined && owner !== session;
    });
    if (isBlocked && session.status !== 'E') this.#wait({ session, statement, executing });
    else this.#execute(session, statement, executing);
  }

  #wait(waiting: Waiting): void {
    this.#waiting.push(waiting);
    const { session, executing } = waiting;
    const limitMs = Number(session.settings.get('statement_timeout') ?? 0);
    if (limitMs === 0) return;
    this.#world.schedule(this.#world.now + limitMs, () => {
      const at = this.#waiting.indexOf(waiting);
      if (at < 0) return;
      this.#waiting.splice(at, 1);
      if (session.status === 'T') this.#fails(session);
      executing(new PostgresError('57014', 'canceling statement due to statement timeout'), session.status);
    });
  }

  #execute(session: ServerSession, statement: SentStatement, executing: Executing): void {
    let result: Outcome | PostgresError;
    try {
      result = this.#carryOut(session, statement);
    } catch (error) {
      if (!(error instanceof PostgresError)) throw error;
      if (session.status === 'T') this.#fails(session);
      result = error;
    }
    executing(result, session.status);
  }

  #carryOut(session: ServerSession, statement: SentStatement): Outcome {
    const { text } = statement;
    const [command = ''] = text.split(' ', 1);
    if (command === 'ROLLBACK' || command === 'COMMIT') return this.#endTransaction(session, command);
    if (session.status === 'E')
      throw new PostgresError(
        '25P02',
        'current transaction is aborted, commands ignored until end of transaction block',
      );
    const now = this.#nextTime();
    if (command === 'BEGIN') {
      if (session.status === 'I') {
        session.transactionStart = now;
        session.isReadOnly = this.#isReadOnlyFor(session);
      }
      session.status = 'T';
      return { rows: [], tag: 'BEGIN' };
    }
    if (command === 'SET') return keepSetting(session, text);
    if (session.status === 'T') return this.#carryOutInTransaction(session, statement, now);
    const { engine } = this.#options;
    this.#apply(session);
    const surroundings = { now, transactionStart: now, pid: session.pid };
    const answer = engine.executeAlone(text, statement.values, surroundings);
    if (answer.error !== undefined) throw answer.error;
    this.#committed(session, [statement], answer, answer.tables);
    return answer.outcomes.at(-1) ?? { rows: [], tag: '' };
  }

  #carryOutInTransaction(session: ServerSession, statement: SentStatement, now: string): Outcome {
    const { engine } = this.#options;
    const { number } = engine;
    this.#redo(session);
    const answer = this.#send(session, statement, now);
    engine.control('ROLLBACK');
    if (answer.error !== undefined) throw answer.error;
    session.done = [...session.done, { ...statement, now, number }];
    for (const name of statement.names) this.#lockedBy.set(name, session);
    return answer.outcomes.at(-1) ?? { rows: [], tag: '' };
  }

  /** Begins a transaction of PGlite, and does again what the transaction of a session has done. */
  #redo(session: ServerSession): void {
    const { engine } = this.#options;
    const { number } = engine;
    this.#apply(session);
    engine.control('BEGIN');
    for (const executed of session.done) {
      // What is read-only draws no number, and may not set it.
      if (!session.isReadOnly) engine.number = executed.number;
      const { error } = this.#send(session, executed, executed.now);
      if (error !== undefined)
        throw new Error(`what a transaction did cannot be done again: ${error.message}`);
    }
    if (!session.isReadOnly) engine.number = number;
  }

  #endTransaction(session: ServerSession, command: 'ROLLBACK' | 'COMMIT'): Outcome {
    const { status, done } = session;
    const commits = command === 'COMMIT' && status === 'T';
    if (commits) {
      this.#redo(session);
      const { engine } = this.#options;
      const answer = engine.control('COMMIT');
      session.status = 'I';
      // PGlite is read by a session of its own.
      engine.set(READ_ONLY, 'off');
      this.#committed(session, done, answer, engine.read());
    }
    session.status = 'I';
    this.#transactionIsOver(session);
    return { rows: [], tag: commits || status === 'I' ? command : 'ROLLBACK' };
  }

  #fails(session: ServerSession): void {
    this.#transactionIsOver(session);
    session.status = 'E';
  }

  #transactionIsOver(session: ServerSession): void {
    session.done = [];
    for (const [name, owner] of this.#lockedBy) if (owner === session) this.#lockedBy.delete(name);
    this.#goOn();
  }

  /** Those who waited for rows go on, in the order in which they came, in an event of their own. */
  #goOn(): void {
    const waiting = this.#waiting;
    if (waiting.length === 0) return;
    this.#waiting = [];
    this.#world.schedule(this.#world.now, () => {
      for (const { session, statement, executing } of waiting) this.execute(session, statement, executing);
    });
  }

  #send(session: ServerSession, { text, values }: SentStatement, now: string): Answer {
    const { transactionStart, pid } = session;
    return this.#options.engine.execute(text, values, { now, transactionStart, pid });
  }

  #isReadOnlyFor({ settings }: ServerSession): boolean {
    return this.isReadOnly || settings.get(READ_ONLY) === 'on';
  }

  #apply(session: ServerSession): void {
    const { engine } = this.#options;
    for (const [name, usual] of Object.entries(USUAL)) {
      if (name !== READ_ONLY) engine.set(name, session.settings.get(name) ?? usual);
    }
    const isReadOnly = session.status === 'I' ? this.#isReadOnlyFor(session) : session.isReadOnly;
    engine.set(READ_ONLY, isReadOnly ? 'on' : 'off');
  }

  #committed(
    session: ServerSession,
    statements: readonly SentStatement[],
    { notifications }: Answer,
    tables: TableTexts | undefined,
  ): void {
    const { keys, others } = sortNotifications(notifications);
    for (const key of keys) session.keys.add(key);
    if (keys.length > 0) this.#tellKeys();
    for (const { text } of statements) {
      const [, channel] = /^LISTEN "(.+)"$/.exec(text) ?? [];
      if (channel !== undefined) session.channels.add(channel);
    }
    if (tables !== undefined) this.#look(statements, tables);
    for (const { channel, payload } of others)
      for (const listener of this.#sessions)
        if (listener.channels.has(channel)) listener.notify(channel, payload);
  }

  #look(statements: readonly SentStatement[], tables: TableTexts): void {
    if (tables.every((text, at) => text === this.tables[at])) return;
    this.#history.push({ at: this.#world.now, tables });
    this.#options.written(statements, tables);
  }

  #hasStarted(): void {
    this.#options.engine.set('simulated.server_start', this.#nextTime());
    this.#tellKeys();
  }

  #tellKeys(): void {
    const keys = [...this.#sessions].flatMap((session) => [...session.keys]);
    this.#options.engine.set('simulated.keys', keys.join(','));
  }

  /** No two statements have the same time. */
  #nextTime(): string {
    this.#lastMicros = Math.max(this.#lastMicros + 1, this.micros());
    const ms = new Date(Math.floor(this.#lastMicros / 1_000)).toISOString().slice(0, -1);
    return `${ms}${String(this.#lastMicros % 1_000).padStart(3, '0')}+00`;
  }
}

/** Settings that the application leaves to whoever has the connection next. */
function keepSetting({ settings }: ServerSession, text: string): Outcome {
  const [, name = '', value = ''] = /^SET (\w+) = (.+)$/.exec(text) ?? [];
  if (value === 'DEFAULT') settings.delete(name);
  else settings.set(name, value);
  return { rows: [], tag: 'SET' };
}
