import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { CommandName, Commands, Order, Reply } from './protocol.ts';

const MAIN = fileURLToPath(new URL('./main.js', import.meta.url));
const START_MS = 15_000;

type Pending = { resolve(value: unknown): void; reject(error: unknown): void };

/** A child process with a lock manager of its own, told over IPC what to do. */
export class Child {
  readonly #process: ChildProcess;
  readonly #pending = new Map<number, Pending>();
  readonly #exited: Promise<unknown>;
  #orders = 0;
  #isHurt = false;

  private constructor(process: ChildProcess) {
    this.#process = process;
    this.#exited = once(process, 'exit').then(() => this.#fail());
    process.on('message', (reply: Reply) => this.#settle(reply));
  }

  /** Starts a process that loads the harness `module`, as on a machine whose wall clock differs by `wallClockOffsetMs`. */
  static async start(module: string, wallClockOffsetMs = 0): Promise<Child> {
    const process = fork(MAIN, [module, String(wallClockOffsetMs)], {
      execArgv: [],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const settled = new AbortController();
    const signal = AbortSignal.any([settled.signal, AbortSignal.timeout(START_MS)]);
    try {
      const said = once(process, 'message', { signal });
      const [first] = (await Promise.race([
        said,
        once(process, 'exit', { signal }).then(() => ['it ended']),
      ])) as [unknown];
      if (first !== 'ready') throw new Error(`The child process did not start: ${JSON.stringify(first)}`);
    } catch (error) {
      process.kill('SIGKILL');
      throw error;
    } finally {
      settled.abort();
    }
    return new Child(process);
  }

  get pid(): number {
    return this.#process.pid as number;
  }

  acquire: Commands['acquire'] = (...args) => this.#tell('acquire', args);
  tryAcquire: Commands['tryAcquire'] = (...args) => this.#tell('tryAcquire', args);
  release: Commands['release'] = (...args) => this.#tell('release', args);
  renew: Commands['renew'] = (...args) => this.#tell('renew', args);
  read: Commands['read'] = (...args) => this.#tell('read', args);
  untilAborted: Commands['untilAborted'] = (...args) => this.#tell('untilAborted', args);
  readAfterBlock: Commands['readAfterBlock'] = (...args) => this.#tell('readAfterBlock', args);
  abortedAfterBlock: Commands['abortedAfterBlock'] = (...args) => this.#tell('abortedAfterBlock', args);
  abortedBeforeNext: Commands['abortedBeforeNext'] = (...args) => this.#tell('abortedBeforeNext', args);
  contend: Commands['contend'] = (...args) => this.#tell('contend', args);
  setWallClock: Commands['setWallClock'] = (...args) => {
    this.#isHurt = true;
    return this.#tell('setWallClock', args);
  };
  timers: Commands['timers'] = (...args) => this.#tell('timers', args);
  closeAndLinger: Commands['closeAndLinger'] = (...args) => {
    this.#isHurt = true;
    return this.#tell('closeAndLinger', args);
  };
  open: Commands['open'] = (...args) => this.#tell('open', args);
  close: Commands['close'] = (...args) => this.#tell('close', args);

  /** The exit code, or `undefined` while the process lives. */
  get exitCode(): number | undefined {
    return this.#process.exitCode ?? undefined;
  }

  /** Whether another case can have it: it lives, was never stopped, and has done all that it was told. */
  get isUnhurt(): boolean {
    const { exitCode, signalCode } = this.#process;
    return !this.#isHurt && this.#pending.size === 0 && exitCode === null && signalCode === null;
  }

  /** Whether it keeps this process alive. */
  set isIdle(isIdle: boolean) {
    for (const handle of [this.#process, this.#process.channel]) {
      if (isIdle) handle?.unref();
      else handle?.ref();
    }
  }

  /** Freezes the process (SIGSTOP). */
  freeze(): void {
    this.#isHurt = true;
    this.#process.kill('SIGSTOP');
  }

  thaw(): void {
    this.#process.kill('SIGCONT');
  }

  /** Kills the process (SIGKILL), frozen or not, and waits for its end. */
  async kill(): Promise<void> {
    this.#isHurt = true;
    this.#process.kill('SIGKILL');
    await this.#exited;
  }

  #tell<Name extends CommandName>(
    command: Name,
    args: Parameters<Commands[Name]>,
  ): ReturnType<Commands[Name]> {
    this.#orders += 1;
    const order: Order = { order: this.#orders, command, args };
    const answer = new Promise<unknown>((resolve, reject) => {
      this.#pending.set(order.order, { resolve, reject });
      this.#process.send(order, (error) => error && reject(error));
    });
    return answer as ReturnType<Commands[Name]>;
  }

  #settle(reply: Reply): void {
    const pending = this.#pending.get(reply.order);
    this.#pending.delete(reply.order);
    if ('error' in reply) pending?.reject(Object.assign(new Error(reply.error.message), reply.error));
    else pending?.resolve(reply.value);
  }

  #fail(): void {
    for (const pending of this.#pending.values()) pending.reject(new Error('The child process ended.'));
    this.#pending.clear();
  }
}
