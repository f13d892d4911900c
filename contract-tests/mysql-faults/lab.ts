import {
  createLocks,
  isLockError,
  type Lease,
  type LockError,
  type LockManager,
  type LockOptions,
} from '@locks/core';
import { mysqlBackend } from '@locks/mysql';
import {
  type MariadbOptions,
  type MariadbServer,
  type Proxy,
  startMariadb,
  startProxy,
  waitUntil,
} from '@locks/test-servers';
import { createPool, type PoolOptions } from 'mysql2';
import { createConnection, type Connection, type RowDataPacket } from 'mysql2/promise';
import { expect } from 'vitest';

export interface LabOptions extends LockOptions {
  readonly pool?: PoolOptions;
  readonly statementTimeoutMs?: number;
}

/** What a test opens, closed in reverse when the test ends, whatever happened. */
export class Lab implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();

  async mariadb(options?: MariadbOptions): Promise<MariadbServer> {
    return this.#stack.use(await startMariadb(options));
  }

  async proxy(server: MariadbServer): Promise<Proxy> {
    return this.#stack.use(await startProxy(server, { protocol: 'raw' }));
  }

  /** Locks with a pool of their own, as one process has them; the tables are made. */
  async locks(
    at: MariadbServer | Proxy,
    { pool: poolOptions, statementTimeoutMs, ...options }: LabOptions = {},
  ): Promise<LockManager> {
    const pool = createPool({ host: at.host, port: at.port, user: 'app', database: 'locks', ...poolOptions });
    this.#stack.defer(() => endPool(pool));
    const backend = mysqlBackend({ pool, ...(statementTimeoutMs !== undefined && { statementTimeoutMs }) });
    const locks = this.#stack.use(createLocks(backend, options));
    await locks.lock('warm').run(() => undefined);
    return locks;
  }

  /** An administrator's connection. */
  async admin(server: MariadbServer): Promise<Connection> {
    const connection = await createConnection(server.urlOf('admin'));
    connection.on('error', () => undefined);
    this.#stack.defer(() => connection.destroy());
    return connection;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** Also when some of its connections answer no more. */
async function endPool(pool: ReturnType<typeof createPool>): Promise<void> {
  const ended = pool.promise().end();
  ended.catch(() => undefined);
  await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 500))]);
}

export async function rows(connection: Connection, sql: string): Promise<RowDataPacket[]> {
  const [found] = await connection.query<RowDataPacket[]>(sql);
  return found;
}

/** Ends every connection of the application. */
export async function killAll(admin: Connection): Promise<number> {
  const found = await rows(admin, "SELECT id FROM information_schema.processlist WHERE user = 'app'");
  for (const { id } of found) await admin.query(`KILL CONNECTION ${String(id)}`).catch(() => undefined);
  return found.length;
}

/** The `LockError` that `work` rejects with. */
export async function failure(work: Promise<unknown>): Promise<LockError> {
  const error: unknown = await work.then(
    (value) => expect.fail(`it did not fail, and gave ${String(value)}`),
    (reason: unknown) => reason,
  );
  if (!isLockError(error)) throw error;
  return error;
}

/** Resolves when the lease's signal aborts: the loss and when it was told. */
export function lossOf(lease: Lease): Promise<{ readonly reason: unknown; readonly at: number }> {
  return new Promise((resolve) => {
    const tell = () => {
      const { reason } = lease.signal;
      resolve({ reason: isLockError(reason, 'LOCK_LOST') ? reason.reason : reason, at: performance.now() });
    };
    if (lease.signal.aborted) tell();
    else lease.signal.addEventListener('abort', tell, { once: true });
  });
}

/** A promise that is awaited later, or not at all when the test fails before. */
export function later<T>(work: Promise<T>): Promise<T> {
  work.catch(() => undefined);
  return work;
}

/** For docs/backends/mysql.md. */
export function figure(what: string, ms: number): void {
  process.stdout.write(`    figure: ${what}: ${Math.round(ms)} ms\n`);
}

/** Resolves when `count` acquisitions wait for `name`. */
export async function untilWaiting(locks: LockManager, name: string, count = 1): Promise<void> {
  const waiting = async () => (await locks.inspect(name)).waiters.length === count;
  await waitUntil(waiting, { what: `${count} waiters of ${name}` });
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
