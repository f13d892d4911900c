import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Answer, Order, Orders, WorkerSetup } from './worker-orders.ts';

const MAIN = fileURLToPath(new URL('worker.ts', import.meta.url));

/** A process with a client and a lock manager of its own that does as it is told. */
export class WorkerProcess implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #pending = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>();
  readonly #exited: Promise<unknown>;
  #orders = 0;

  acquire: Orders['acquire'] = (...args) => this.#tell('acquire', args);
  release: Orders['release'] = (...args) => this.#tell('release', args);
  write: Orders['write'] = (...args) => this.#tell('write', args);
  state: Orders['state'] = (...args) => this.#tell('state', args);
  startLoad: Orders['startLoad'] = (...args) => this.#tell('startLoad', args);
  stopLoad: Orders['stopLoad'] = (...args) => this.#tell('stopLoad', args);

  private constructor(process: ChildProcess) {
    this.#process = process;
    this.#exited = once(process, 'exit').then(() => {
      for (const { reject } of this.#pending.values()) reject(new Error('The worker has ended.'));
    });
    process.on('message', (answer: Answer | 'ready') => {
      if (answer === 'ready') return;
      const pending = this.#pending.get(answer.order);
      this.#pending.delete(answer.order);
      if ('error' in answer) pending?.reject(Object.assign(new Error(answer.error.message), answer.error));
      else pending?.resolve(answer.value);
    });
  }

  static async start(setup: WorkerSetup): Promise<WorkerProcess> {
    const child = fork(MAIN, [JSON.stringify(setup)], {
      execArgv: [],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const worker = new WorkerProcess(child);
    await Promise.race([
      once(child, 'message'),
      worker.#exited.then(() => Promise.reject(new Error('The worker did not start.'))),
    ]);
    return worker;
  }

  /** SIGSTOP. */
  freeze(): void {
    this.#process.kill('SIGSTOP');
  }

  thaw(): void {
    this.#process.kill('SIGCONT');
  }

  /** SIGKILL, frozen or not. */
  async kill(): Promise<void> {
    this.#process.kill('SIGKILL');
    await this.#exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  #tell(name: keyof Orders, args: readonly unknown[]): Promise<never> {
    this.#orders += 1;
    const order: Order = { order: this.#orders, name, args };
    return new Promise<unknown>((resolve, reject) => {
      this.#pending.set(order.order, { resolve, reject });
      this.#process.send(order, (error) => {
        if (error) reject(error);
      });
    }) as Promise<never>;
  }
}
