import type pg from 'pg';
import { endConnection, ownConnection } from '../pool/own-connection.ts';
import { greet } from './greeting.ts';
import type { CheckedSettings } from './options.ts';
import { Session, SessionEndedError, type Row, type Statement } from './session.ts';
import { refuseTransactionPooler } from './transaction-pooler.ts';
import { TokenSequence } from './token-sequence.ts';

const APPLICATION = 'locks-advisory';
/** A connection that is not ready by then is given up. */
const OPEN_MS = 5_000;
/** After one that could not be opened, for so long no other is, to stand in the queue with. */
const REFUSED_MS = 500;
/** A session that carries nothing is kept for this long. */
const LINGER_MS = 10_000;

/** What the sessions tell whoever uses them. */
export interface SessionsListener {
  /** It ended without being asked to. */
  lost(session: Session, isMain: boolean): void;
  /** Another wait may stand in the queue now. */
  freed(): void;
  notified(channel: string, payload: string): void;
}

/** The connections of one backend: a main one that tries and holds, and others that stand in the server's queue. */
export class Sessions {
  readonly tokens: TokenSequence | undefined;
  readonly #pool: pg.Pool;
  readonly #settings: CheckedSettings;
  readonly #channels: readonly string[];
  readonly #listener: SessionsListener;
  readonly #open = new Set<Session>();
  /** How many runs each session carries, and since when none. */
  readonly #loads = new Map<Session, { runs: number; idleSince: number }>();
  #opening = 0;
  #refusedUntil = 0;
  #main: Session | undefined;
  #openingMain: Promise<Session> | undefined;
  #sessionsAreOurs = false;
  #closed = false;
  #sweeper: NodeJS.Timeout | undefined;

  constructor(
    pool: pg.Pool,
    settings: CheckedSettings,
    channels: readonly string[],
    listener: SessionsListener,
  ) {
    this.#pool = pool;
    this.#settings = settings;
    this.#channels = channels;
    this.#listener = listener;
    this.tokens = settings.schema === undefined ? undefined : new TokenSequence(settings.schema);
  }

  /** The session that tries, holds what nobody was in the way of, and answers questions of others. */
  main(): Session | Promise<Session> {
    if (this.#main?.alive === true) {
      const load = this.#loads.get(this.#main);
      if (load !== undefined) load.idleSince = performance.now();
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

  /** A session that carries nothing, to stand in the queue; `undefined` when there are as many as there may be. */
  async forWait(): Promise<Session | undefined> {
    for (const session of this.#open) {
      const usable = session !== this.#main && session.alive && !session.closing;
      if (usable && this.#loads.get(session)?.runs === 0) {
        this.carry(session);
        return session;
      }
    }
    // One is always left for the main session.
    const places = this.#settings.maxConnections - (this.#main?.alive === true ? 0 : 1);
    if (this.#open.size + this.#opening >= places) return undefined;
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

  carry(session: Session): void {
    const load = this.#loads.get(session);
    if (load !== undefined) load.runs += 1;
  }

  unload(session: Session): void {
    const load = this.#loads.get(session);
    if (load === undefined) return;
    load.runs -= 1;
    if (load.runs > 0) return;
    load.idleSince = performance.now();
    if (session !== this.#main) this.#listener.freed();
  }

  isMine(pid: number): boolean {
    return [...this.#open].some((session) => session.pid === pid && session.alive);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#sweeper);
    await this.#openingMain?.catch(() => undefined);
    await Promise.all([...this.#open].map((session) => session.close()));
  }

  async #openSession(channels: readonly string[]): Promise<Session> {
    this.#opening += 1;
    try {
      const client = await this.#connect();
      return await this.#inTime(client, () => this.#makeSession(client, channels));
    } finally {
      this.#opening -= 1;
    }
  }

  async #makeSession(client: pg.Client, channels: readonly string[]): Promise<Session> {
    const { sessionTimeoutMs } = this.#settings;
    const greeting = await greet(client, sessionTimeoutMs, channels);
    if (!greeting.direct && !this.#sessionsAreOurs) await refuseTransactionPooler(() => this.#connect());
    this.#sessionsAreOurs = true;
    await this.tokens?.prepare(client);
    if (this.#closed) throw new SessionEndedError('the backend was closed');
    const session: Session = new Session(
      client,
      greeting.pid,
      sessionTimeoutMs,
      greeting.at,
      () => this.#probe(session),
      (rows) => this.#probed(session, rows),
      this.tokens,
    );
    this.#add(session);
    return session;
  }

  async #connect(): Promise<pg.Client> {
    const client = ownConnection(this.#pool, APPLICATION);
    client.on('error', () => undefined);
    // What an application has set for its own statements: waits take longer, and answers are read as texts.
    const { connectionParameters } = client as { connectionParameters?: { query_timeout?: number } };
    if (connectionParameters !== undefined) connectionParameters.query_timeout = 0;
    Object.assign(client, { pipeline: false, binary: false });
    return await this.#inTime(client, async () => {
      await client.connect();
      return client;
    });
  }

  /** A server that takes a connection and says nothing is no server: whoever waits is told while they still wait. */
  #inTime<T>(client: pg.Client, work: () => Promise<T>): Promise<T> {
    const limitMs = Math.min(OPEN_MS, (this.#settings.sessionTimeoutMs * 2) / 3);
    return new Promise((resolve, reject) => {
      const giveUp = (error: unknown): void => {
        endConnection(client);
        client.connection.stream.destroy();
        reject(error);
      };
      const timer = setTimeout(() => {
        giveUp(new SessionEndedError(`no session could be opened within ${Math.round(limitMs)} ms`));
      }, limitMs);
      work()
        .then(resolve, giveUp)
        .finally(() => clearTimeout(timer));
    });
  }

  #add(session: Session): void {
    this.#open.add(session);
    this.#loads.set(session, { runs: 0, idleSince: performance.now() });
    session.client.on('notification', ({ channel, payload }) => {
      this.#listener.notified(channel, payload ?? '');
    });
    session.onEnd(() => {
      this.#open.delete(session);
      this.#loads.delete(session);
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

  /** Whether the server still is who it was; of the main session also, which of the others are still in the queue. */
  #probe(session: Session): Statement {
    if (session !== this.#main) return { text: 'SELECT pg_backend_pid()' };
    const blocked = [...this.#open].filter((other) => other.blocked).map(({ pid }) => pid);
    return {
      text: `SELECT pg_backend_pid(), array_to_string($1::int4[], ','),
               (SELECT string_agg(pid::text, ',') FROM pg_stat_activity WHERE pid = ANY ($1::int4[]))`,
      values: [blocked],
    };
  }

  #probed(session: Session, rows: Row[]): void {
    const [pid, asked, alive] = rows[0] ?? [];
    if (Number(pid) !== session.pid) {
      return session.end(new Error('a pooler gave its server session to somebody else'));
    }
    const gone = new Set((asked ?? '').split(',').filter((one) => one !== ''));
    for (const one of (alive ?? '').split(',')) gone.delete(one);
    for (const other of this.#open) {
      // Its grant, or its end, was swallowed on the way.
      if (gone.has(String(other.pid))) other.end(new Error('the server ended it'));
    }
  }

  #sweep(): void {
    const now = performance.now();
    const carries = [...this.#loads.values()].some(({ runs }) => runs > 0);
    for (const [session, { runs, idleSince }] of this.#loads) {
      if (runs > 0 || now - idleSince < LINGER_MS || (session === this.#main && carries)) continue;
      if (session === this.#main) this.#main = undefined;
      void session.close();
    }
    if (this.#open.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}
