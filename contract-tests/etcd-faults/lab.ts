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
import { type EtcdBackendOptions, etcdBackend } from '@locks/etcd';
import {
  type EtcdCluster,
  type EtcdClusterOptions,
  type EtcdServer,
  type Proxy,
  startEtcd,
  startEtcdCluster,
  startProxy,
  waitUntil,
} from '@locks/test-servers';
import { Etcd3 } from 'etcd3';
import { expect } from 'vitest';
import type { WorkerSetup } from './worker.ts';

const WORKER = fileURLToPath(new URL('worker.ts', import.meta.url));

export interface LabOptions extends LockOptions {
  readonly backend?: EtcdBackendOptions;
}

/** What a test opens, closed in reverse when the test ends, whatever happened. */
export class Lab implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();

  use<T extends AsyncDisposable>(resource: T): T {
    return this.#stack.use(resource);
  }

  async etcd(): Promise<EtcdServer> {
    return this.use(await startEtcd());
  }

  async cluster(options?: EtcdClusterOptions): Promise<EtcdCluster> {
    return this.use(await startEtcdCluster(options));
  }

  async proxy(server: { readonly host: string; readonly port: number }): Promise<Proxy> {
    return this.use(await startProxy(server, { protocol: 'raw' }));
  }

  /** Locks of one client of its own. */
  locks(hosts: string | string[], { backend, ...options }: LabOptions = {}): LockManager {
    return this.use(createLocks(etcdBackend({ hosts }, backend), options));
  }

  /** What an administrator has. */
  admin(hosts: string | string[]): Etcd3 {
    const admin = new Etcd3({ hosts });
    this.#stack.defer(() => admin.close());
    return admin;
  }

  /** A process that acquires a lock, and holds it or waits for it until it is killed. */
  async worker(setup: WorkerSetup): Promise<Worker> {
    return this.use(new Worker(fork(WORKER, [JSON.stringify(setup)], { execArgv: [] })));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

export class Worker implements AsyncDisposable {
  readonly #process: ChildProcess;
  /** Resolves when it holds. */
  readonly granted: Promise<unknown>;

  constructor(process: ChildProcess) {
    this.#process = process;
    this.granted = once(process, 'message');
  }

  freeze(): void {
    this.#process.kill('SIGSTOP');
  }

  thaw(): void {
    this.#process.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    this.#process.kill('SIGKILL');
    await once(this.#process, 'exit');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
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

/** Resolves when `count` acquisitions wait for `name`. */
export async function untilWaiting(locks: LockManager, name: string, count = 1): Promise<void> {
  const waiting = async () => (await locks.inspect(name)).waiters.length === count;
  await waitUntil(waiting, { what: `${count} waiters of ${name}` });
}

/** For docs/backends/etcd.md. */
export function figure(what: string, ms: number): void {
  process.stdout.write(`    figure: ${what}: ${Math.round(ms)} ms\n`);
}

/** The one key of a lock that is held and not waited for. */
export async function keyOf(admin: Etcd3, name: string): Promise<{ key: string; lease: string }> {
  const { kvs } = await admin.getAll().prefix(`locks/${name}/`).exec();
  const [kv] = kvs;
  if (kv === undefined) throw new Error(`Nothing holds ${name}.`);
  return { key: kv.key.toString(), lease: kv.lease };
}
