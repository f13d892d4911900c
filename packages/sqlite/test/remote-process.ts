import { fork } from 'node:child_process';
import type { LockMode } from '@locks/core/backend';
import { CallableProcess } from '@locks/core/conformance/process';
import { onTestFinished } from 'vitest';
import type { RemoteMethods } from './remote-main.ts';

/** Another process with a backend on the same file. */
export class RemoteProcess extends CallableProcess<RemoteMethods> {
  #keys = 0;

  constructor(path: string, execArgv: readonly string[] = []) {
    const main = new URL('./remote-main.ts', import.meta.url);
    super(fork(main, [path], { serialization: 'advanced', execArgv: [...execArgv] }));
    onTestFinished(() => this.kill());
  }

  readonly release = this.call.release;
  readonly hurry = this.call.hurry;
  readonly turns = this.call.turns;
  readonly stop = this.call.stop;

  /** Acquires the lock, however long that takes; gives the fencing token. */
  acquire(
    resource: string,
    ttlMs = 10_000,
    mode: LockMode = { kind: 'exclusive' },
    key = this.#nextKey(),
  ): Promise<bigint> {
    return this.call.acquire(resource, ttlMs, key, mode);
  }

  /** Puts an acquisition into the queue, and resolves when it is there; it then waits on its own. */
  async wait(
    resource: string,
    mode: LockMode = { kind: 'exclusive' },
  ): Promise<{ readonly granted: Promise<bigint> }> {
    const key = this.#nextKey();
    const granted = this.acquire(resource, 10_000, mode, key);
    granted.catch(() => undefined); // killed while it waits: the test that cares looks at `granted`
    await this.call.attempted(key);
    return { granted };
  }

  #nextKey(): string {
    this.#keys += 1;
    return String(this.#keys);
  }
}
