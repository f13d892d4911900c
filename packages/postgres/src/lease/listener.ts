import { randomBytes } from 'node:crypto';
import { isLockError } from '@locks/core';
import { refuseTransactionPooler } from '../advisory/transaction-pooler.ts';
import { askWithin } from '../driver/ask.ts';
import type { OwnConnection, Value } from '../driver/postgres-driver.ts';
import type { StatementDeadline, StatementResult } from '../driver/postgres-statements.ts';
import { isRefusal } from '../driver/server-error.ts';

const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 5_000;
/** The silence after which the connection is closed: the heartbeat goes over it. */
const ANSWER_MS = 1_000;

export interface ListenerEvents {
  message(payload: string): void;
  /** The connection receives messages from now on; those that were sent before are lost. */
  listening(): void;
  /** The connection receives nothing any more. */
  lost(): void;
  /** A pooler lends the connection to others between statements: it will never receive a message. */
  pooled(): void;
}

/**
 * The connection on which a backend receives hand-offs. The first waiter opens it; after a failure it is opened again as
 * long as somebody waits. It never keeps the process alive.
 */
export class Listener {
  readonly #connect: () => OwnConnection;
  readonly #channel: string;
  readonly #events: ListenerEvents;
  #connection: OwnConnection | undefined;
  #key: string | undefined;
  #retryMs = FIRST_RETRY_MS;
  #retry: NodeJS.Timeout | undefined;
  #closed = false;
  /** Whether it is known that a pooler in between lends whole sessions. */
  #hasOwnSessions = false;

  constructor(connect: () => OwnConnection, channel: string, events: ListenerEvents) {
    this.#connect = connect;
    this.#channel = channel;
    this.#events = events;
  }

  /**
   * The key of the advisory lock that the session on this connection holds while it listens. The store sees by the lock whether
   * the session still exists: see migrations/1/02-serve.sql. `undefined`: the connection does not listen.
   */
  get key(): string | undefined {
    return this.#key;
  }

  /** Opens the connection, unless it is open, being opened, or waiting for its next try. */
  open(): void {
    if (this.#connection !== undefined || this.#retry !== undefined || this.#closed) return;
    const connection = this.#connect();
    this.#connection = connection;
    connection.onEnd(() => this.#lost(connection));
    connection.onNotification((_, payload) => {
      if (this.#connection === connection) this.#events.message(payload);
    });
    this.#listen(connection).catch(() => this.#lost(connection));
  }

  /** Runs a statement on this connection, and closes the connection if there is no answer. */
  async run(text: string, values: readonly Value[], call: StatementDeadline): Promise<StatementResult> {
    const connection = this.#connection;
    if (connection === undefined || this.#key === undefined) throw new Error('the listener is not connected');
    try {
      return await askWithin(connection, { text, values }, call, ANSWER_MS);
    } catch (error) {
      if (!isRefusal(error)) this.#lost(connection);
      throw error;
    }
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#retry);
    this.#drop();
  }

  async #listen(connection: OwnConnection): Promise<void> {
    await connection.connect();
    if (this.#connection !== connection) return connection.end();
    connection.setRef(false);
    const call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
    // A listener is idle most of the time, so it switches the limit off. PostgreSQL has the setting since version 14.
    const idle = `SELECT pg_catalog.pg_backend_pid(), (SELECT pg_catalog.set_config(name, '0', false)
      FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'idle_session_timeout')`;
    const { rows, processId } = await askWithin(connection, { text: idle }, call, ANSWER_MS);
    if (this.#connection !== connection) return;
    const isOwn = Number(rows[0]?.[0]) === processId || (await this.#isOwnBehindPooler());
    if (this.#connection !== connection) return;
    if (!isOwn) {
      this.#drop();
      this.#closed = true;
      return this.#events.pooled();
    }
    await askWithin(connection, { text: `LISTEN "${this.#channel}"` }, call, ANSWER_MS);
    // Each session has a key of its own: the server may take long to end a session whose connection was lost.
    const key = String(randomBytes(8).readBigInt64BE());
    const hold = { text: 'SELECT pg_catalog.pg_advisory_lock($1::bigint)', values: [key] };
    await askWithin(connection, hold, call, ANSWER_MS);
    if (this.#connection !== connection) return;
    this.#key = key;
    this.#retryMs = FIRST_RETRY_MS;
    this.#events.listening();
  }

  /** Whether a pooler is in between that lends whole sessions, where `LISTEN` works. */
  async #isOwnBehindPooler(): Promise<boolean> {
    if (this.#hasOwnSessions) return true;
    const connect = async (): Promise<OwnConnection> => {
      const connection = this.#connect();
      await connection.connect();
      return connection;
    };
    try {
      await refuseTransactionPooler(connect);
      this.#hasOwnSessions = true;
      return true;
    } catch (error) {
      if (isLockError(error, 'LOCK_UNSUPPORTED')) return false;
      throw error;
    }
  }

  #lost(connection: OwnConnection): void {
    if (this.#connection !== connection) return;
    this.#drop();
    if (this.#closed) return;
    this.#retry = setTimeout(() => {
      // No retry is scheduled: the next heartbeat opens the connection again, if somebody still waits.
      this.#retry = undefined;
    }, this.#retryMs);
    this.#retry.unref();
    this.#retryMs = Math.min(this.#retryMs * 2, LONGEST_RETRY_MS);
    this.#events.lost();
  }

  #drop(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#key = undefined;
    void connection?.end();
  }
}
