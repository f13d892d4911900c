import { randomBytes } from 'node:crypto';
import type pg from 'pg';
import {
  connectionTo,
  dedicatedConnection,
  endConnection,
  unrefConnection,
} from '../pool/dedicated-connection.ts';
import type { StatementDeadline, StatementResult } from '../pool/postgres-statements.ts';
import { queryConnection } from '../pool/query-connection.ts';
import { isRefusal } from '../pool/server-error.ts';

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
  readonly #connect: () => pg.Client;
  readonly #channel: string;
  readonly #events: ListenerEvents;
  #client: pg.Client | undefined;
  #key: string | undefined;
  #retryMs = FIRST_RETRY_MS;
  #retry: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(
    pool: pg.Pool,
    address: true | { readonly connectionString: string },
    channel: string,
    events: ListenerEvents,
  ) {
    const name = '@locks/postgres listener';
    this.#connect = () =>
      address === true ? dedicatedConnection(pool, name) : connectionTo(address.connectionString, name);
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
    if (this.#client !== undefined || this.#retry !== undefined || this.#closed) return;
    const client = this.#connect();
    this.#client = client;
    client.on('error', () => this.#lost(client));
    client.on('end', () => this.#lost(client));
    client.on('notification', ({ payload }) => {
      if (payload !== undefined && this.#client === client) this.#events.message(payload);
    });
    this.#listen(client).catch(() => this.#lost(client));
  }

  /** Runs a statement on this connection, and closes the connection if there is no answer. */
  async run(text: string, values: unknown[], call: StatementDeadline): Promise<StatementResult> {
    const client = this.#client;
    if (client === undefined || this.#key === undefined) throw new Error('the listener is not connected');
    try {
      return await queryConnection(client, text, values, call, ANSWER_MS);
    } catch (error) {
      if (!isRefusal(error)) this.#lost(client);
      throw error;
    }
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#retry);
    this.#drop();
  }

  async #listen(client: pg.Client): Promise<void> {
    await client.connect();
    if (this.#client !== client) return endConnection(client);
    unrefConnection(client);
    const call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
    // A listener is idle most of the time, so it switches the limit off. PostgreSQL has the setting since version 14.
    const idle = `SELECT pg_catalog.pg_backend_pid(), (SELECT pg_catalog.set_config(name, '0', false)
      FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'idle_session_timeout')`;
    const { rows, processId } = await queryConnection(client, idle, [], call, ANSWER_MS);
    if (this.#client !== client) return;
    if (Number(rows[0]?.[0]) !== processId) {
      this.#drop();
      this.#closed = true;
      return this.#events.pooled();
    }
    await queryConnection(client, `LISTEN "${this.#channel}"`, [], call, ANSWER_MS);
    // Each session has a key of its own: the server may take long to end a session whose connection was lost.
    const key = String(randomBytes(8).readBigInt64BE());
    await queryConnection(client, 'SELECT pg_catalog.pg_advisory_lock($1::bigint)', [key], call, ANSWER_MS);
    if (this.#client !== client) return;
    this.#key = key;
    this.#retryMs = FIRST_RETRY_MS;
    this.#events.listening();
  }

  #lost(client: pg.Client): void {
    if (this.#client !== client) return;
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
    const client = this.#client;
    this.#client = undefined;
    this.#key = undefined;
    if (client !== undefined) endConnection(client);
  }
}
