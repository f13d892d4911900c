import type { ConnectionPool } from '@locks/core/backend';

/** A row with its columns as the server writes them, whatever parsers the application has set on its client. */
export type TextRow = readonly (string | null)[];

export interface TextResult {
  readonly rows: readonly TextRow[];
  /** The number of rows that the statement returned or changed. */
  readonly count: number;
}

/** A parameter of a statement. Bytes are sent as they are, an array as one of SQL, anything else as the text that SQL has for it. */
export type Value = string | number | bigint | boolean | Buffer | null | undefined | readonly Value[];

export interface Statement {
  /** The name under which each connection prepares the statement once; without it the statement is not prepared. */
  readonly name?: string;
  /** One statement; without values also several, of which no rows are read. */
  readonly text: string;
  readonly values?: readonly Value[];
}

/** Called once with the outcome of a statement. */
export type Answered = (error: Error | null | undefined, result?: TextResult) => void;

/** A connection to the server. Its statements are answered one after the other, in the order in which they were sent. */
export interface Connection {
  /**
   * The process id that the connection was told when the session began. If a pooler is in between, it is a number of the
   * pooler, and differs from `pg_backend_pid()`.
   */
  readonly processId: number | undefined;
  send(statement: Statement, done: Answered): void;
}

/** A connection that a pool has lent. No error of it ends the process before its return. */
export interface PooledConnection extends Connection {
  /** Whether the last statement has left a transaction open; `false` where nobody else uses the connections. */
  readonly isInTransaction: boolean;
  /** Returns the connection. One with an error that the server did not answer with is closed. */
  release(error: Error | null | undefined): void;
}

/** A connection that nobody else uses. No error of it ends the process. */
export interface OwnConnection extends Connection {
  /** Connects, once. Rejects when the server does not answer in time. */
  connect(): Promise<void>;
  /** Adds a listener of the end of the connection, whoever ends it; statements in flight fail before or after it. */
  onEnd(listener: (why: Error) => void): void;
  onNotification(listener: (channel: string, payload: string) => void): void;
  /** Whether the open connection keeps the process alive. */
  setRef(isRef: boolean): void;
  /** Takes leave of the server, which releases the session's locks at once. Never rejects. */
  end(): Promise<void>;
  /** Ends the connection at once, whether the server answers or not. */
  cut(): void;
}

/** A client library, as the backends need it. */
export interface PostgresDriver {
  /** Lends connections for single statements. */
  readonly pool: ConnectionPool<PooledConnection>;
  /**
   * Makes a connection outside of the pool. A driver without it has one session only.
   *
   * @param name - its application name, if the settings of the pool have none
   * @param address - the URL of another address than the pool's
   */
  open?(name: string, address?: string): OwnConnection;
  /** Whether the application has closed what the driver was given. */
  isClientClosed?(): boolean;
  /** Closes what the driver has opened itself, and nothing that it was given. */
  close(): Promise<void>;
}

/** A driver with connections beside its pool. */
export type OpeningDriver = PostgresDriver & Required<Pick<PostgresDriver, 'open'>>;

export function canOpen(driver: PostgresDriver): driver is OpeningDriver {
  return driver.open !== undefined;
}
