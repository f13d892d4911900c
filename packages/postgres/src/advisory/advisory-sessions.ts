import { isLockError } from '@locks/core';
import { CombinedClock, withTimeLimit } from '@locks/core/backend';
import type { OwnConnection, Statement, TextRow } from '../driver/postgres-driver.ts';
import { AdvisorySession } from './advisory-session.ts';
import { markLayout } from './layout-marker.ts';
import type { CheckedAdvisoryOptions } from './options.ts';
import { setUpSession } from './session-setup.ts';
import { SessionEndedError } from './session-statement.ts';
import { TokenSequence } from './token-sequence.ts';
import { refuseTransactionPooler } from './transaction-pooler.ts';

const APPLICATION = 'locks-advisory';
/** The time limit for a connection to become ready. */
const OPEN_MS = 5_000;
/** The pause before another session to wait on is opened, after a failure to open one. */
const REFUSED_MS = 500;
/** The time for which a session without locks is kept open. */
const LINGER_MS = 10_000;
/** The time for which a pooler that was found is not tested again. */
const POOLER_MS = 60_000;

/** The events that the sessions report to their backend. */
export interface SessionsListener {
  /** A session ended without our request. */
  lost(session: AdvisorySession, isMain: boolean): void;
  /** A session may be free now to wait on. */
  freed(): void;
  notified(channel: string, payload: string): void;
}

/** The sessions of one backend: a main one that tries and holds, and others that wait in the server's queue. */
export class AdvisorySessions {
  readonly tokens: TokenSequence | undefined;
  readonly #open: (name: string) => OwnConnection;
  readonly #settings: CheckedAdvisoryOptions;
  readonly #channels: readonly string[];
  readonly #listener: SessionsListener;
  readonly #sessions = new Set<AdvisorySession>();
  #opening = 0;
  #refusedUntil = 0;
  #main: AdvisorySession | undefined;
  #openingMain: Promise<AdvisorySession> | undefined;
  /** Whether it is known that no pooler lends our sessions to others. */
  #sessionsAreOurs = false;
  /** The refusal of a pooler, and until when it counts, on `performance.now()`. */
  #pooler: { readonly refusal: unknown; readonly until: number } | undefined;
  #closed = false;
  #sweeper: NodeJS.Timeout | undefined;

  constructor(
    open: (name: string) => OwnConnection,
    settings: CheckedAdvisoryOptions,
    channels: readonly string[],
    listener: SessionsListener,
  ) {
    this.#open = open;
    this.#settings = settings;
    this.#channels = channels;
    this.#listener = listener;
    this.tokens = settings.fencing && new TokenSequence(settings.fencing.schema);
  }

  /** The session that tries locks, holds those that were free, and answers the queries of other processes. */
  main(): AdvisorySession | Promise<AdvisorySession> {
    if (this.#main?.alive === true) {
      this.#main.idleSince = performance.now();
      return this.#main;
    }
    if (this.#closed) throw new SessionEndedError('the backend was closed');
    this.#openingMain ??= this.#openSession(this.#channels)
      .then((session) => (this.#main = session))
      .finally(() => {
        this.#openingMain = undefined;
      });
    return this.#openingMain;
  }

  /** A session without locks, to wait on in the server's queue; `undefined`: all that may be open are in use. */
  async forWait(): Promise<AdvisorySession | undefined> {
    for (const session of this.#sessions) {
      const usable = session !== this.#main && session.alive && !session.closing;
      if (usable && session.groups === 0) {
        this.carry(session);
        return session;
      }
    }
    // One connection is reserved for the main session.
    const limit = this.#settings.maxConnections - (this.#main?.alive === true ? 0 : 1);
    if (this.#sessions.size + this.#opening >= limit) return undefined;
    if (performance.now() < this.#refusedUntil) return undefined;
    try {
      const session = await this.#openSession([]);
      this.carry(session);
      return session;
    } catch (error) {
      this.#refusedUntil = performance.now() + REFUSED_MS;
      throw error;
    }
  }

  carry(session: AdvisorySession): void {
    session.groups += 1;
  }

  unload(session: AdvisorySession): void {
    session.groups -= 1;
    if (session.groups > 0 || !this.#sessions.has(session)) return;
    session.idleSince = performance.now();
    if (session !== this.#main) this.#listener.freed();
  }

  isMine(pid: number): boolean {
    return [...this.#sessions].some((session) => session.pid === pid && session.alive);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#sweeper);
    await this.#openingMain?.catch(() => undefined);
    await Promise.all([...this.#sessions].map((session) => session.close()));
  }

  async #openSession(channels: readonly string[]): Promise<AdvisorySession> {
    if (this.#pooler !== undefined && performance.now() < this.#pooler.until) throw this.#pooler.refusal;
    this.#opening += 1;
    try {
      const connection = await this.#connect();
      return await this.#inTime(connection, this.#makeSession(connection, channels));
    } finally {
      this.#opening -= 1;
    }
  }

  async #makeSession(connection: OwnConnection, channels: readonly string[]): Promise<AdvisorySession> {
    const timeoutMs = this.#settings.sessionTimeoutMs;
    const clock = new CombinedClock();
    const setUpAt = clock.now();
    const { pid, direct } = await setUpSession(connection, timeoutMs, channels);
    if (!direct && !this.#sessionsAreOurs) await this.#refusePooler();
    this.#sessionsAreOurs = true;
    // Before the first lock of the session. Behind the search for a pooler, which would keep the mark.
    await markLayout(connection);
    await this.tokens?.prepare(connection);
    if (this.#closed) throw new SessionEndedError('the backend was closed');
    const session: AdvisorySession = new AdvisorySession({
      connection,
      pid,
      clock,
      setUpAt,
      timeoutMs,
      tokens: this.tokens,
      probe: () => this.#probe(session),
      probed: (rows) => this.#probed(session, rows),
    });
    this.#add(session);
    return session;
  }

  async #refusePooler(): Promise<void> {
    try {
      await refuseTransactionPooler(() => this.#connect());
    } catch (error) {
      if (isLockError(error, 'LOCK_UNSUPPORTED'))
        this.#pooler = { refusal: error, until: performance.now() + POOLER_MS };
      throw error;
    }
  }

  async #connect(): Promise<OwnConnection> {
    const connection = this.#open(APPLICATION);
    await this.#inTime(connection, connection.connect());
    return connection;
  }

  /** Gives up on a server that accepts a connection and does not answer: waiters fail while they still wait. */
  async #inTime<T>(connection: OwnConnection, work: Promise<T>): Promise<T> {
    const limitMs = Math.min(OPEN_MS, (this.#settings.sessionTimeoutMs * 2) / 3);
    try {
      return await withTimeLimit(work, limitMs, () => {
        throw new SessionEndedError(`no session could be opened within ${Math.round(limitMs)} ms`);
      });
    } catch (error) {
      connection.cut();
      throw error;
    }
  }

  #add(session: AdvisorySession): void {
    this.#sessions.add(session);
    session.connection.onNotification((channel, payload) => this.#listener.notified(channel, payload));
    session.onEnd(() => {
      this.#sessions.delete(session);
      const isMain = session === this.#main;
      if (isMain) this.#main = undefined;
      if (session.closing) return;
      this.#listener.lost(session, isMain);
      this.#listener.freed();
    });
    if (this.#sweeper !== undefined) return;
    this.#sweeper = setInterval(() => this.#sweep(), LINGER_MS / 2);
    this.#sweeper.unref();
  }

  /** Asks whether the server process is still ours; the main session also asks which of the waiting sessions still exist. */
  #probe(session: AdvisorySession): Statement {
    if (session !== this.#main) return { text: 'SELECT pg_catalog.pg_backend_pid()' };
    const blocked = [...this.#sessions].filter((other) => other.blocked).map(({ pid }) => pid);
    return {
      text: `SELECT pg_catalog.pg_backend_pid(), pg_catalog.array_to_string($1::integer[], ','),
               (SELECT pg_catalog.string_agg(pid::pg_catalog.text, ',') FROM pg_catalog.pg_stat_activity
                WHERE pid OPERATOR(pg_catalog.=) ANY ($1::integer[]))`,
      values: [blocked],
    };
  }

  #probed(session: AdvisorySession, rows: readonly TextRow[]): void {
    const [pid, asked, alive] = rows[0] ?? [];
    if (Number(pid) !== session.pid) {
      return session.end(new Error('a pooler gave its server session to somebody else'));
    }
    const gone = new Set((asked ?? '').split(',').filter((one) => one !== ''));
    for (const one of (alive ?? '').split(',')) gone.delete(one);
    for (const other of this.#sessions) {
      // The network lost the message of the session's grant, or of its end.
      if (gone.has(String(other.pid))) other.end(new Error('the server ended it'));
    }
  }

  #sweep(): void {
    const now = performance.now();
    const anyCarries = [...this.#sessions].some(({ groups }) => groups > 0);
    for (const session of this.#sessions) {
      const { groups, idleSince } = session;
      if (groups > 0 || now - idleSince < LINGER_MS || (session === this.#main && anyCarries)) continue;
      if (session === this.#main) this.#main = undefined;
      void session.close();
    }
    if (this.#sessions.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}
