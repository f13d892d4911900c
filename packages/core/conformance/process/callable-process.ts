import { type ChildProcess, fork } from 'node:child_process';
import { type ProcessCall, type ProcessReply, READY } from './messages.ts';

const START_MS = 15_000;

interface PendingCall {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** A child process whose main module calls `serveCalls(methods)`. */
export class CallableProcess<Methods extends object> implements AsyncDisposable {
  /** Each method runs in the child process. A call rejects with what the method threw, or when the process ends. */
  readonly call: Methods;
  /** The child process. */
  readonly child: ChildProcess;
  readonly #pending = new Map<number, PendingCall>();
  readonly #exited: Promise<void>;
  readonly #limitMs: number | undefined;
  #calls = 0;

  /**
   * @param child - has an IPC channel; with `serialization: 'advanced'` arguments and results may be whatever can be cloned
   * @param limitMs - a call that takes longer kills the process. Default: no limit
   */
  constructor(child: ChildProcess, limitMs?: number) {
    this.child = child;
    this.#limitMs = limitMs;
    this.#exited = new Promise((resolve) => {
      const end = (error: Error): void => {
        for (const { reject } of this.#pending.values()) reject(error);
        this.#pending.clear();
        resolve();
      };
      child.once('exit', (code, signal) =>
        end(new Error(`The process ended: ${signal ?? `exit code ${code}`}.`)),
      );
      child.once('error', end);
    });
    child.on('message', (reply) => this.#receive(reply as ProcessReply));
    this.call = new Proxy({} as Methods, {
      get:
        (_, method) =>
        (...args: unknown[]) =>
          this.#send(String(method), args),
    });
  }

  /** Whether it runs, and has answered every call. */
  get isUsable(): boolean {
    return this.#pending.size === 0 && !this.#hasExited;
  }

  /**
   * Resolves when the methods of the process can be called.
   * @throws an error where the process ends, or takes longer than 15 s: it is killed then
   */
  async ready(): Promise<void> {
    const limit = setTimeout(() => this.child.kill('SIGKILL'), START_MS);
    try {
      await this.#send(READY, []);
    } catch (error) {
      this.child.kill('SIGKILL');
      throw error;
    } finally {
      clearTimeout(limit);
    }
  }

  /** Stops the process (SIGSTOP), as a long garbage collection or a virtual machine that is moved would. */
  freeze(): void {
    this.child.kill('SIGSTOP');
  }

  /** Lets a frozen process go on. */
  thaw(): void {
    this.child.kill('SIGCONT');
  }

  /** Kills the process (SIGKILL), frozen or not, and waits for its end. */
  async kill(): Promise<void> {
    if (!this.#hasExited) this.child.kill('SIGKILL');
    await this.#exited;
  }

  /** Ends the process, and waits for its end. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  get #hasExited(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  async #send(method: string, args: readonly unknown[]): Promise<unknown> {
    this.#calls += 1;
    const call: ProcessCall = { id: this.#calls, method, args };
    const limit = this.#limitMs && setTimeout(() => this.child.kill('SIGKILL'), this.#limitMs);
    try {
      return await new Promise((resolve, reject) => {
        this.#pending.set(call.id, { resolve, reject });
        this.child.send(call, (error) => error && reject(error));
      });
    } finally {
      this.#pending.delete(call.id);
      clearTimeout(limit);
    }
  }

  #receive(reply: ProcessReply): void {
    const pending = this.#pending.get(reply.id);
    if ('error' in reply) pending?.reject(Object.assign(new Error(reply.error.message), reply.error));
    else pending?.resolve(reply.value);
  }
}

/**
 * Starts the program `main` with these arguments, and resolves when its methods can be called.
 *
 * @throws Error when the program fails before that, or takes longer than 15 s
 */
export async function startProcess<Methods extends object>(
  main: string | URL,
  args: readonly string[] = [],
): Promise<CallableProcess<Methods>> {
  const child = fork(main, args, {
    execArgv: [],
    serialization: 'advanced',
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const started = new CallableProcess<Methods>(child);
  await started.ready();
  return started;
}
