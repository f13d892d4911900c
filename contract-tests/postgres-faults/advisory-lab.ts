import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  createLocks,
  isLockError,
  type Lease,
  type LockError,
  type LockManager,
  type LockOptions,
} from '@locks/core';
import { advisoryKey, postgresAdvisoryBackend } from '@locks/postgres';
import { type Proxy, startPostgres, startProxy, waitUntil } from '@locks/test-servers';
import { expect } from 'vitest';

const HOLDER = fileURLToPath(new URL('advisory-holder.ts', import.meta.url));

/** A session lives for this long without a sign of life, and is told lost after two thirds of it. */
export const SESSION_MS = 3_000;
export const TOLD_MS = 2_000;
/** How late this machine may be. */
export const SLACK_MS = 1_500;

export type Server = Awaited<ReturnType<typeof startPostgres>>;

export interface LabOptions extends LockOptions {
  /** The name of its connections. */
  readonly name?: string;
  readonly maxConnections?: number;
  readonly sessionTimeoutMs?: number;
}

let shared: Promise<Server> | undefined;
let names = 0;

/** One server for all tests of a file that leave it alone. */
export function sharedServer(): Promise<Server> {
  shared ??= startPostgres();
  return shared;
}

/** For `afterAll`. */
export async function stopSharedServer(): Promise<void> {
  await (await shared)?.stop();
}

/** A name that no other test uses, good for locks and for connections. */
export function freshName(): string {
  names += 1;
  return `${process.pid}-${names}`;
}

/** What a test opens, closed in reverse when the test ends, whatever happened. */
export class Lab implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();

  use<T extends AsyncDisposable>(resource: T): T {
    return this.#stack.use(resource);
  }

  /** A server of its own, to be hurt. */
  async server(settings?: Readonly<Record<string, string | number>>): Promise<Server> {
    return this.use(await startPostgres(settings === undefined ? {} : { settings }));
  }

  async proxy(server: Server): Promise<Proxy> {
    return this.use(await startProxy(server, { protocol: 'raw' }));
  }

  /** Locks of one client of its own. */
  locks(at: { readonly port: number }, options: LabOptions = {}): LockManager {
    const { name = 'test', maxConnections = 4, sessionTimeoutMs = SESSION_MS, ...lockOptions } = options;
    const connectionString = `postgres://postgres@127.0.0.1:${at.port}/postgres?application_name=${encodeURIComponent(name)}`;
    return this.use(
      createLocks(
        postgresAdvisoryBackend({ connectionString, maxConnections, sessionTimeoutMs }),
        lockOptions,
      ),
    );
  }

  /** A process of its own that acquires a lock; resolves when it holds, or, with `waits`, when it has begun to wait. */
  async process(
    at: { readonly port: number },
    name: string,
    waits = false,
    sessionMs = SESSION_MS,
  ): Promise<ChildProcess> {
    const url = `postgres://postgres@127.0.0.1:${at.port}/postgres`;
    const child = fork(HOLDER, [url, name, String(sessionMs)], { execArgv: [] });
    this.#stack.defer(() => {
      child.kill('SIGKILL');
    });
    const [begun] = (await once(child, 'message')) as [unknown];
    expect(begun).toBe('begins');
    if (!waits) expect(await once(child, 'message')).toEqual(['holds', undefined]);
    return child;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** SIGSTOP; resolves when the process stands still. */
export async function freeze(child: ChildProcess): Promise<void> {
  child.kill('SIGSTOP');
  const stopped = () => / T /.test(readFileSync(`/proc/${child.pid}/stat`, 'latin1'));
  await waitUntil(stopped, { what: `process ${child.pid} to stop` });
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

/** When a lease was granted. */
export async function entry(
  acquiring: Promise<Lease>,
): Promise<{ readonly lease: Lease; readonly at: number }> {
  const lease = await acquiring;
  return { lease, at: performance.now() };
}

/** For docs/backends/postgres-advisory.md. */
export function figure(what: string, ms: number): void {
  process.stdout.write(`    figure: ${what}: ${Math.round(ms)} ms\n`);
}

/** Resolves when `count` acquisitions wait for `name`. */
export async function untilWaiting(locks: LockManager, name: string, count = 1): Promise<void> {
  const waiting = async () => (await locks.inspect(name)).waiters.length === count;
  await waitUntil(waiting, { what: `${count} waiters of ${name}`, timeoutMs: 20_000 });
}

/** What the server says of one name: the sessions that have its lock, and those that wait for it. */
export async function onServer(server: Server, name: string): Promise<{ granted: number; waiting: number }> {
  const bits = BigInt.asUintN(64, advisoryKey(name));
  const rows = await server.query(
    `SELECT count(*) FILTER (WHERE granted) AS granted, count(*) FILTER (WHERE NOT granted) AS waiting
     FROM pg_locks WHERE locktype = 'advisory' AND classid = ${bits >> 32n} AND objid = ${bits & 0xffff_ffffn}`,
  );
  return { granted: Number(rows[0]?.['granted']), waiting: Number(rows[0]?.['waiting']) };
}

/** How many advisory locks the sessions of that name have, or wait for. */
export async function locksOf(server: Server, application: string): Promise<number> {
  const rows = await server.query(
    `SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
     WHERE locktype = 'advisory' AND application_name = '${application}'`,
  );
  return Number(rows[0]?.['count']);
}

/** Resolves when the server knows nothing of a name any more. */
export async function untilFree(server: Server, name: string, timeoutMs = 3_000): Promise<void> {
  const free = async () => {
    const { granted, waiting } = await onServer(server, name);
    return granted + waiting === 0;
  };
  await waitUntil(free, { what: `the server to forget ${name}`, timeoutMs });
}
