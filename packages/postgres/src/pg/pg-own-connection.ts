import pg from 'pg';
import type { Answered, OwnConnection, Statement } from '../driver/postgres-driver.ts';
import { sendTexts } from './text-query.ts';

const CONNECT_MS = 5_000;

/** A connection with the settings of a pool, or to another address, for example past a pooler. */
export class PgOwnConnection implements OwnConnection {
  readonly #client: pg.Client;

  constructor(client: pg.Client) {
    this.#client = client;
    client.on('error', ignore);
    // Settings of the application for its own statements are overridden: a wait for a lock takes longer, and answers are read as
    // texts.
    const { connectionParameters } = client as { connectionParameters?: { query_timeout?: number } };
    if (connectionParameters !== undefined) connectionParameters.query_timeout = 0;
    Object.assign(client, { pipeline: false, binary: false });
  }

  /** A connection with the settings of a pool, but outside of the pool. */
  static like({ options }: pg.Pool, name: string): PgOwnConnection {
    const config: pg.ClientConfig = {
      ...options,
      application_name: options.application_name ?? name,
      keepAlive: true,
      connectionTimeoutMillis: options.connectionTimeoutMillis || CONNECT_MS,
    };
    // A spread does not copy the password: the pool makes it not enumerable.
    config.password = options.password;
    return new PgOwnConnection(new pg.Client(config));
  }

  static to(connectionString: string, name: string): PgOwnConnection {
    const config: pg.ClientConfig = {
      connectionString,
      fallback_application_name: name,
      keepAlive: true,
      connectionTimeoutMillis: CONNECT_MS,
    };
    return new PgOwnConnection(new pg.Client(config));
  }

  get processId(): number | undefined {
    return processIdOf(this.#client);
  }

  async connect(): Promise<void> {
    await this.#client.connect();
  }

  send(statement: Statement, done: Answered): void {
    sendTexts(this.#client, statement, done);
  }

  onEnd(listener: (why: Error) => void): void {
    let ended = false;
    const end = (why: Error): void => {
      if (ended) return;
      ended = true;
      listener(why);
    };
    this.#client.on('error', end);
    this.#client.on('end', () => end(new Error('the connection was closed')));
  }

  onNotification(listener: (channel: string, payload: string) => void): void {
    this.#client.on('notification', ({ channel, payload }) => listener(channel, payload ?? ''));
  }

  setRef(isRef: boolean): void {
    const stream = this.#client.connection.stream as Partial<Record<'ref' | 'unref', () => void>>;
    if (isRef) stream.ref?.call(stream);
    else stream.unref?.call(stream);
  }

  async end(): Promise<void> {
    // pg destroys the socket if a query is under way or the socket is dead; otherwise it waits for the server to close it.
    await this.#client.end().catch(ignore);
  }

  cut(): void {
    void this.end();
    // The socket is destroyed at once: a connection that was cut may never confirm its end.
    this.#client.connection.stream.destroy();
  }
}

export function processIdOf(client: pg.ClientBase): number | undefined {
  return (client as { readonly processID?: number }).processID;
}

function ignore(): void {
  // The listeners of the end, and the statements in flight, are told.
}
