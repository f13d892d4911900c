import { type ChildProcess, fork } from 'node:child_process';
import type { LockMode } from '@locks/core/backend';
import { onTestFinished } from 'vitest';

export interface RemoteReply {
  readonly seq: number;
  readonly value?: unknown;
  readonly error?: string;
}

/** Another process with a backend on the same file (see remote-main.ts). */
export class RemoteProcess {
  readonly child: ChildProcess;
  #seq = 0;
  #keys = 0;
  readonly #open = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();

  constructor(path: string, execArgv: readonly string[] = []) {
    this.child = fork(new URL('./remote-main.ts', import.meta.url), [path], {
      serialization: 'advanced',
      execArgv: [...execArgv],
    });
    this.child.on('message', (message) => {
      const { seq, value, error } = message as RemoteReply;
      const waiting = this.#open.get(seq);
      this.#open.delete(seq);
      if (error === undefined) waiting?.resolve(value);
      else waiting?.reject(new Error(error));
    });
    this.child.on('exit', () => {
      for (const waiting of this.#open.values()) waiting.reject(new Error('the process ended'));
    });
    onTestFinished(() => void this.child.kill('SIGKILL'));
  }

  /** Takes the lock, waiting for it as long as it takes; gives the fencing token. */
  acquire(
    resource: string,
    ttlMs = 10_000,
    mode: LockMode = { kind: 'exclusive' },
    key = this.#nextKey(),
  ): Promise<bigint> {
    return this.#ask('acquire', resource, ttlMs, key, mode) as Promise<bigint>;
  }

  /** Puts an acquisition into the line, and resolves when it is there; it then waits on its own. */
  async wait(
    resource: string,
    mode: LockMode = { kind: 'exclusive' },
  ): Promise<{ readonly granted: Promise<bigint> }> {
    const key = this.#nextKey();
    const granted = this.acquire(resource, 10_000, mode, key);
    granted.catch(() => undefined); // killed while it waits: the test that cares looks at `granted`
    await this.#ask('attempted', key);
    return { granted };
  }

  release(token: bigint): Promise<string> {
    return this.#ask('release', token) as Promise<string>;
  }

  hurry(ms: number): Promise<{ readonly count: number; readonly longestMs: number }> {
    return this.#ask('hurry', ms) as Promise<{ count: number; longestMs: number }>;
  }

  ready(): Promise<unknown> {
    return this.#ask('ready');
  }

  #nextKey(): string {
    this.#keys += 1;
    return String(this.#keys);
  }

  #ask(method: string, ...args: unknown[]): Promise<unknown> {
    this.#seq += 1;
    const seq = this.#seq;
    return new Promise((resolve, reject) => {
      this.#open.set(seq, { resolve, reject });
      this.child.send({ seq, method, args });
    });
  }
}
