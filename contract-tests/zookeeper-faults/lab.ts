import { createLocks, isLockError, type Lease, type LockError } from '@locks/core';
import { type Proxy, startProxy, startZookeeper, waitUntil, type ZooKeeperServer } from '@locks/test-servers';
import { type NodeZooKeeperClient, type ZooKeeperBackendOptions, zookeeperBackend } from '@locks/zookeeper';
import { zookeeperBackend as nativeBackend } from '@locks/zookeeper/native';
import { expect } from 'vitest';
import { nativeLibrary } from '../src/zookeeper/native-library.ts';
import { childrenOf } from '../src/zookeeper/admin.ts';

/** Short, so that the tests are; the servers of the tests have ticks of 200 ms. */
export const SESSION_MS = 2_000;

export type ZooKeeperLocks = ReturnType<typeof locksOf>;

/** What a test opens, closed in reverse when the test ends, whatever happened. */
export class Lab implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();

  use<T extends AsyncDisposable>(resource: T): T {
    return this.#stack.use(resource);
  }

  defer(close: () => Promise<void>): void {
    this.#stack.defer(close);
  }

  async server(): Promise<ZooKeeperServer> {
    return this.use(await startZookeeper());
  }

  async proxy(server: ZooKeeperServer): Promise<Proxy> {
    return this.use(await startProxy(server, { protocol: 'raw' }));
  }

  /** Locks of one client of its own. */
  locks(
    at: { readonly address: string } | { readonly host: string; readonly port: number },
    options: Partial<ZooKeeperBackendOptions & { sessionTimeoutMs: number }> = {},
  ): ZooKeeperLocks {
    const servers = 'address' in at ? at.address : `${at.host}:${at.port}`;
    return this.with({ servers, sessionTimeoutMs: SESSION_MS, ...options } as ZooKeeperBackendOptions);
  }

  /** Locks of a native client of its own. */
  async native(at: { readonly address: string }): Promise<ZooKeeperLocks> {
    const options = { library: await nativeLibrary(), servers: at.address, sessionTimeoutMs: SESSION_MS };
    return this.use(createLocks(nativeBackend(options)));
  }

  with(options: ZooKeeperBackendOptions): ZooKeeperLocks {
    return this.use(locksOf(options));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

function locksOf(options: ZooKeeperBackendOptions) {
  return createLocks(zookeeperBackend(options));
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

/** Resolves when the lease's signal aborts: the reason of the loss and when it was told. */
export function lossOf(
  lease: Pick<Lease, 'signal'>,
): Promise<{ readonly reason: unknown; readonly at: number }> {
  return new Promise((resolve) => {
    const tell = (): void => {
      const { reason } = lease.signal;
      resolve({ reason: isLockError(reason, 'LOCK_LOST') ? reason.reason : reason, at: performance.now() });
    };
    if (lease.signal.aborted) tell();
    else lease.signal.addEventListener('abort', tell, { once: true });
  });
}

/** Resolves with the time at which `work` did. */
export async function timeOf<T>(work: Promise<T>): Promise<{ readonly value: T; readonly at: number }> {
  const value = await work;
  return { value, at: performance.now() };
}

/** A promise and whether it is settled by now. */
export function watched<T>(work: Promise<T>): { readonly work: Promise<T>; readonly settled: boolean } {
  const watch = { work, settled: false };
  const settle = (): void => {
    watch.settled = true;
  };
  work.then(settle, settle);
  return watch;
}

/** For docs/backends/zookeeper.md. */
export function figure(what: string, value: number, unit = 'ms'): void {
  process.stdout.write(`    figure: ${what}: ${Math.round(value * 10) / 10} ${unit}\n`);
}

/** The path of a resource's line, where its name needs no encoding. */
export function parentOf(name: string): string {
  return `/locks/${name}`;
}

/** Resolves when `count` acquisitions wait for `name`. */
export async function untilWaiting(locks: ZooKeeperLocks, name: string, count = 1): Promise<void> {
  const waiting = async (): Promise<boolean> => (await locks.inspect(name)).waiters.length === count;
  await waitUntil(waiting, { what: `${count} waiters of ${name}` });
}

/** Resolves when so many nodes stand in line. */
export async function untilInLine(servers: string, name: string, count: number): Promise<readonly string[]> {
  return await waitUntil(
    async () => {
      const line = await childrenOf(servers, parentOf(name));
      return line.length === count ? line : undefined;
    },
    { what: `${count} nodes in the line of ${name}` },
  );
}

export interface Traffic {
  /** Requests by the name of the library's method. */
  readonly requests: Map<string, number>;
  /** Events of watches that the server sent. */
  events: number;
}

/** Counts what a client of the library asks of the server, and what the server tells by itself. */
export function countTraffic(client: NodeZooKeeperClient, traffic: Traffic): void {
  const methods = client as unknown as Record<string, (...args: unknown[]) => unknown>;
  for (const name of ['create', 'remove', 'getChildren', 'getData']) {
    const original = methods[name]?.bind(client);
    methods[name] = (...args) => {
      // The probe belongs to the session, not to a lock.
      if (args[0] !== '/locks-backend-probe')
        traffic.requests.set(name, (traffic.requests.get(name) ?? 0) + 1);
      const counted = args.map((arg, index) =>
        typeof arg === 'function' && index === args.length - 2 ? countEvents(arg, traffic) : arg,
      );
      return original?.(...counted);
    };
  }
}

// biome-ignore lint/complexity/noBannedTypes: the watcher of the library, whatever it takes.
function countEvents(watcher: Function, traffic: Traffic): (...args: unknown[]) => unknown {
  return (...args) => {
    traffic.events += 1;
    return watcher(...args);
  };
}

export function requestsOf({ requests }: Traffic): number {
  return [...requests.values()].reduce((sum, count) => sum + count, 0);
}
