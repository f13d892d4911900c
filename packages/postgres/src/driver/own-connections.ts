import { type ConnectionPool, withTimeLimit } from '@locks/core/backend';
import type { Answered, OwnConnection, PooledConnection, Statement } from './postgres-driver.ts';
import { asError, isRefusal } from './server-error.ts';

/** The time for which a connection is kept open without use. */
const IDLE_MS = 10_000;
/** The time limit of a graceful end, before the connection is cut. */
const END_MS = 500;

/** A pool of connections of the backend's own, for single statements. Idle ones do not keep the process alive. */
export class OwnConnections implements ConnectionPool<PooledConnection> {
  readonly limit: number;
  readonly #open: () => OwnConnection;
  /** The connections that nobody uses, the one that was used last at the end. */
  readonly #idle: LentConnection[] = [];
  #sweeper: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(limit: number, open: () => OwnConnection) {
    this.limit = limit;
    this.#open = open;
  }

  connect(lend: (error: Error | null | undefined, connection: PooledConnection | undefined) => void): void {
    const idle = this.#idle.pop();
    if (idle !== undefined) {
      idle.connection.setRef(true);
      // Statements of one moment can be sent together: their callers are still adding them.
      process.nextTick(lend, undefined, idle);
      return;
    }
    const connection = this.#open();
    connection.connect().then(
      () => lend(undefined, this.#added(connection)),
      (error: unknown) => {
        connection.cut();
        lend(asError(error), undefined);
      },
    );
  }

  release(connection: PooledConnection): void {
    connection.release(undefined);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#sweeper);
    await Promise.all(this.#idle.splice(0).map(endGracefully));
  }

  #added(connection: OwnConnection): PooledConnection {
    const lent = new LentConnection(connection, (error) => {
      if (lent.hasEnded) return;
      if (error && !isRefusal(error)) connection.cut();
      else if (this.#isClosed) void endGracefully(lent);
      else this.#keep(lent);
    });
    connection.onEnd(() => {
      lent.hasEnded = true;
      const at = this.#idle.indexOf(lent);
      if (at >= 0) this.#idle.splice(at, 1);
    });
    return lent;
  }

  #keep(lent: LentConnection): void {
    lent.idleSince = performance.now();
    lent.connection.setRef(false);
    this.#idle.push(lent);
    this.#sweeper ??= setInterval(() => this.#sweep(), IDLE_MS / 2).unref();
  }

  #sweep(): void {
    const before = performance.now() - IDLE_MS;
    const old = this.#idle.findIndex(({ idleSince }) => idleSince > before);
    for (const lent of this.#idle.splice(0, old < 0 ? this.#idle.length : old)) void endGracefully(lent);
    if (this.#idle.length > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}

class LentConnection implements PooledConnection {
  readonly connection: OwnConnection;
  readonly isInTransaction = false;
  readonly release: (error: Error | null | undefined) => void;
  hasEnded = false;
  /** The time since which nobody uses the connection, on `performance.now()`. */
  idleSince = 0;

  constructor(connection: OwnConnection, release: (error: Error | null | undefined) => void) {
    this.connection = connection;
    this.release = release;
  }

  get processId(): number | undefined {
    return this.connection.processId;
  }

  send(statement: Statement, done: Answered): void {
    this.connection.send(statement, done);
  }
}

async function endGracefully({ connection }: LentConnection): Promise<void> {
  await withTimeLimit(connection.end(), END_MS, () => undefined);
  connection.cut();
}
