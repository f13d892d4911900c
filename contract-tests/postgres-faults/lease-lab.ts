import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import {
  createLocks,
  isLockError,
  type Lease,
  type LockError,
  type LockManager,
  type LockOptions,
} from '@locks/core';
import { postgresLeaseBackend, type PostgresLeaseOptions } from '@locks/postgres';
import { type PostgresServer, type Proxy, startPostgres, startProxy, waitUntil } from '@locks/test-servers';
import pg from 'pg';
import { expect } from 'vitest';
import type { HolderMessage, HolderOrder } from './lease-holder.ts';

const HOLDER = fileURLToPath(new URL('lease-holder.ts', import.meta.url));

/** How late this machine may be. */
export const SLACK_MS = 1_000;

export interface LabOptions extends LockOptions {
  /** Of the pool. */
  readonly pool?: pg.PoolConfig;
  readonly schema?: string;
  readonly listen?: PostgresLeaseOptions['listen'];
}

/** What a test opens, closed in reverse when the test ends, whatever happened. */
export class LeaseLab implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();

  use<T extends AsyncDisposable>(resource: T): T {
    return this.#stack.use(resource);
  }

  async server(settings: Readonly<Record<string, string | number>> = {}): Promise<PostgresServer> {
    return this.use(await startPostgres({ settings }));
  }

  async proxy(server: { readonly host: string; readonly port: number }): Promise<Proxy> {
    return this.use(await startProxy(server, { protocol: 'raw' }));
  }

  /** Locks of one client of its own. */
  locks(at: { readonly port: number }, options: LabOptions = {}): LockManager {
    const { pool: config, schema, listen, ...lockOptions } = options;
    const pool = new pg.Pool({
      connectionString: urlOf(at),
      connectionTimeoutMillis: 1_000,
      allowExitOnIdle: true,
      ...config,
    });
    this.#stack.defer(() => pool.end());
    const backend = postgresLeaseBackend({
      pool,
      ...(schema !== undefined && { schema }),
      ...(listen !== undefined && { listen }),
    });
    return this.use(createLocks(backend, lockOptions));
  }

  async holder(at: { readonly port: number }, lockOptions: LockOptions = {}): Promise<HolderProcess> {
    return this.use(await HolderProcess.start(urlOf(at), lockOptions));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** A client in a process of its own. */
export class HolderProcess implements AsyncDisposable {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(url: string, lockOptions: LockOptions): Promise<HolderProcess> {
    const child = fork(HOLDER, [url, JSON.stringify(lockOptions)], { execArgv: [] });
    await once(child, 'message');
    return new HolderProcess(child);
  }

  /** Begins an acquire; resolves at its end. What is acquired is kept. */
  async acquire(name: string, waitMs = 20_000): Promise<HolderMessage> {
    const order: HolderOrder = { name, waitMs };
    this.#child.send(order);
    const [message] = (await once(this.#child, 'message')) as [HolderMessage];
    return message;
  }

  freeze(): void {
    this.#child.kill('SIGSTOP');
  }

  thaw(): void {
    this.#child.kill('SIGCONT');
  }

  /** SIGKILL, frozen or not. */
  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}

export function urlOf({ port }: { readonly port: number }, role = 'postgres'): string {
  return `postgres://${role}@127.0.0.1:${port}/postgres`;
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
    const { signal } = lease;
    const tell = (): void =>
      resolve({
        reason: isLockError(signal.reason) ? signal.reason.reason : signal.reason,
        at: performance.now(),
      });
    if (signal.aborted) tell();
    else signal.addEventListener('abort', tell, { once: true });
  });
}

/** Resolves when `count` acquisitions wait for `name`. */
export async function untilWaiting(locks: LockManager, name: string, count = 1): Promise<void> {
  const waiting = async (): Promise<boolean> => (await locks.inspect(name)).waiters.length === count;
  await waitUntil(waiting, { what: `${count} waiters of ${name}` });
}

/** Resolves when `count` connections of the role `postgres` listen for hand-overs. */
export async function untilListening(server: PostgresServer, count: number): Promise<void> {
  const listening = async (): Promise<boolean> => (await listeners(server)) === count;
  await waitUntil(listening, { what: `${count} listeners` });
}

/** A condition on pg_stat_activity. */
export const isListener = "application_name = '@locks/postgres listener'";

async function listeners(server: PostgresServer): Promise<number> {
  const [row] = await server.query(
    `SELECT count(*) FROM pg_stat_activity WHERE ${isListener} AND usename = 'postgres' AND query NOT LIKE 'SELECT pg_backend_pid%'`,
  );
  return Number(row?.['count']);
}

/** For docs/backends/postgres.md. */
export function figure(what: string, ms: number): void {
  process.stdout.write(`    figure: ${what}: ${Math.round(ms)} ms\n`);
}
