import {
  createLocks,
  isLockError,
  type Lease,
  type LockError,
  type LockManager,
  type LockOptions,
} from '@locks/core';
import type { RedisBackendOptions } from '@locks/redis-ioredis';
import {
  type Proxy,
  type RedisOptions,
  type RedisServer,
  startProxy,
  startRedis,
  waitUntil,
} from '@locks/test-servers';
import { expect } from 'vitest';
import type { HostPort, RedisAddress } from '../src/redis/address.ts';
import { type Library, openClient } from '../src/redis/open-client.ts';
import { WorkerProcess } from './worker-process.ts';

export interface LabOptions extends LockOptions {
  readonly backend?: RedisBackendOptions;
}

/** What a test opens, closed in reverse when the test ends, whatever happened. */
export class Lab implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();

  use<T extends AsyncDisposable>(resource: T): T {
    return this.#stack.use(resource);
  }

  onEnd(cleanup: () => void | Promise<void>): void {
    this.#stack.defer(cleanup);
  }

  async redis(options?: RedisOptions): Promise<RedisServer> {
    return this.use(await startRedis(options));
  }

  async proxy(server: HostPort): Promise<Proxy> {
    return this.use(await startProxy(server));
  }

  /** Locks of one client of its own. */
  async locks(
    library: Library,
    at: RedisAddress | { url: string },
    options: LabOptions = {},
  ): Promise<LockManager> {
    const { backend, ...lockOptions } = options;
    const client = await openClient(library, 'kind' in at ? at : { kind: 'standalone', url: at.url });
    this.onEnd(() => client.end());
    return this.use(createLocks(client.backend(backend), lockOptions));
  }

  /** Locks of one client in a process of its own. */
  async worker(
    library: Library,
    at: RedisAddress | { url: string },
    options: LabOptions = {},
  ): Promise<WorkerProcess> {
    const address: RedisAddress = 'kind' in at ? at : { kind: 'standalone', url: at.url };
    return this.use(await WorkerProcess.start({ library, address, ...options }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
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

/** A promise and whether it is settled by now. */
export function watched<T>(work: Promise<T>): { readonly work: Promise<T>; readonly settled: boolean } {
  const watch = { work, settled: false };
  const settle = () => {
    watch.settled = true;
  };
  work.then(settle, settle);
  return watch;
}

/** For docs/backends/redis.md. */
export function figure(what: string, ms: number): void {
  process.stdout.write(`    figure: ${what}: ${Math.round(ms)} ms\n`);
}

/** Resolves when `count` acquisitions wait for `name`. */
export async function untilWaiting(locks: LockManager, name: string, count = 1): Promise<void> {
  const waiting = async () => (await locks.inspect(name)).waiters.length === count;
  await waitUntil(waiting, { what: `${count} waiters of ${name}` });
}

/** Resolves when `count` acquisitions wait for `name` and are told of their turn: a first wait begins before that. */
export async function untilListening(redis: RedisServer, name: string, count = 1): Promise<void> {
  const listening = async () => {
    const members = (await redis.command('ZRANGE', `{lock:${name}}:q`, 0, -1)) as string[];
    return members.filter((member) => /^[^@|]+\|\d+\|=/.test(member)).length === count;
  };
  await waitUntil(listening, { what: `${count} waiters of ${name} that are told` });
}
