import { readFileSync } from 'node:fs';
import type { LockManager, LockOptions } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { type CallableProcess, startProcess } from '@locks/core/conformance/process';
import type { Address } from '@locks/core/conformance/proxy';
import { type RedisProxy, startProxy, waitUntil } from '@locks/test-servers';
import type { WorkerCommands } from './worker/commands.ts';

const WORKER_MAIN = new URL('worker/main.ts', import.meta.url);

/** A server that a test may hurt. */
export interface FaultyServer extends Address, AsyncDisposable {
  pause(): Promise<void>;
  resume(): void;
  kill(): Promise<void>;
  restart(): Promise<void>;
}

/** A client in a process of its own. */
export type Worker = CallableProcess<WorkerCommands>;

/**
 * The fault tests of a store stand on a subclass: its clients, its servers, and what an administrator has. A test makes one;
 * what the test opens is closed in reverse when it ends, whatever happened.
 */
export abstract class FaultLab<Options extends object = LockOptions> implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();

  /** `import.meta.url` of the module that exports the subclass as default: workers load it. */
  abstract readonly module: string;

  /** A server of the test's own. */
  abstract server(): Promise<FaultyServer>;

  /** Locks of one client of its own. */
  abstract locks(at: Address, options?: Options): LockManager | Promise<LockManager>;

  /** A backend on a client of its own, for a renewal thread. Absent: the lab has no such threads. */
  backend?(at: Address, options?: Options): LockBackend | Promise<LockBackend>;

  /** What proxies understand: of Redis they count commands, and lose single replies. */
  protected readonly protocol: 'raw' | 'redis' = 'raw';

  /** With what a lab of another process must know beside the options. */
  protected workerOptions(options: Options): Options {
    return options;
  }

  use<T extends AsyncDisposable>(resource: T): T {
    return this.#stack.use(resource);
  }

  defer(close: () => unknown): void {
    this.#stack.defer(async () => void (await close()));
  }

  async proxy(server: Address): Promise<RedisProxy> {
    return this.use(await startProxy(server, { protocol: this.protocol }));
  }

  /** Locks of one client in a process of its own. `options` go there as JSON. */
  async worker(at: object, options = {} as Options): Promise<Worker> {
    // A server is more than its address, and does not go through JSON.
    const { host, port } = at as Address;
    const address = port === undefined ? at : { host, port };
    const setup = JSON.stringify({ address, options: this.workerOptions(options) });
    return this.use(await startProcess<WorkerCommands>(WORKER_MAIN, [this.module, setup]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }
}

/** SIGSTOP; resolves when the process stands still. */
export async function freeze(worker: Worker): Promise<void> {
  worker.freeze();
  const { pid } = worker.child;
  const isStopped = () => / T /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  await waitUntil(isStopped, { what: `process ${pid} to stop` });
}
