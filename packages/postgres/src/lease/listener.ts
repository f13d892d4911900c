import type pg from 'pg';
import { connectionTo, endConnection, ownConnection, unrefConnection } from '../pool/own-connection.ts';
import { type Answer, ConnectionStatements, type Patience } from '../pool/statements.ts';

const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 5_000;
/** The regular look goes over this connection: no answer for so long, and it is given up. */
const ANSWER_MS = 1_000;

export interface ListenerEvents {
  message(payload: string): void;
  /** The connection is (again) told of everything: what was sent before is lost. */
  listening(): void;
  /** A pooler lends the connection to others between statements: nothing will ever be heard. */
  pooled(): void;
}

/**
 * The one connection of a backend that hears of hand-overs, opened by the first waiter and opened again for as long as
 * somebody waits. It never keeps the process alive.
 */
export class Listener {
  readonly #connect: () => pg.Client;
  readonly #channel: string;
  readonly #events: ListenerEvents;
  #client: pg.Client | undefined;
  #statements: ConnectionStatements | undefined;
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
      address === true ? ownConnection(pool, name) : connectionTo(address.connectionString, name);
    this.#channel = channel;
    this.#events = events;
  }

  get live(): boolean {
    return this.#statements !== undefined;
  }

  /** Opens the connection unless it is open, on its way, or waits for its next try. */
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

  /** A statement on this connection. One that gets no answer ends it. */
  async run(text: string, values: unknown[], call: Patience): Promise<Answer> {
    const client = this.#client;
    if (client === undefined || this.#statements === undefined)
      throw new Error('the listener is not connected');
    try {
      return await this.#statements.run(text, values, call);
    } catch (error) {
      if ((error as { severity?: unknown }).severity !== 'ERROR') this.#lost(client);
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
    const statements = new ConnectionStatements(client, ANSWER_MS);
    const call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };
    // Idle for long is what it is made to be. The setting is not known before PostgreSQL 14.
    const idle = `SELECT pg_backend_pid(), (SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout')`;
    const { rows, processId } = await statements.run(idle, [], call);
    if (this.#client !== client) return;
    if (Number(rows[0]?.[0]) !== processId) {
      this.#drop();
      this.#closed = true;
      return this.#events.pooled();
    }
    await statements.run(`LISTEN "${this.#channel}"`, [], call);
    if (this.#client !== client) return;
    this.#statements = statements;
    this.#retryMs = FIRST_RETRY_MS;
    this.#events.listening();
  }

  #lost(client: pg.Client): void {
    if (this.#client !== client) return;
    this.#drop();
    if (this.#closed) return;
    this.#retry = setTimeout(() => {
      // Whoever still waits asks for it again.
      this.#retry = undefined;
    }, this.#retryMs);
    this.#retry.unref();
    this.#retryMs = Math.min(this.#retryMs * 2, LONGEST_RETRY_MS);
  }

  #drop(): void {
    const client = this.#client;
    this.#client = undefined;
    this.#statements = undefined;
    if (client !== undefined) endConnection(client);
  }
}
