import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Answer, ClientSetup, Order, Orders } from './orders.ts';

const MAIN = fileURLToPath(new URL('client.ts', import.meta.url));

/** A process with a Web Locks client of its own that does as it is told. */
export class ClientProcess implements AsyncDisposable {
  /** What it does. */
  readonly tell: Orders;
  readonly #process: ChildProcess;
  readonly #pending = new Map<number, { resolve(value: unknown): void; reject(error: unknown): void }>();
  readonly #exited: Promise<void>;
  #orders = 0;

  private constructor(process: ChildProcess) {
    this.#process = process;
    this.#exited = once(process, 'exit').then(() => {
      for (const { reject } of this.#pending.values()) reject(new Error('The client has ended.'));
    });
    process.on('message', (answer: Answer) => {
      if (answer === 'ready') return;
      const pending = this.#pending.get(answer.order);
      this.#pending.delete(answer.order);
      if ('error' in answer) pending?.reject(new Error(answer.error));
      else pending?.resolve(answer.value);
    });
    this.tell = new Proxy({} as Orders, {
      get:
        (_, name) =>
        (...args: unknown[]) =>
          this.#tell(name as keyof Orders, args),
    });
  }

  static async start(setup: ClientSetup): Promise<ClientProcess> {
    const child = fork(MAIN, [JSON.stringify(setup)], {
      env: { ...process.env, ...setup.env },
      execArgv: [],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const client = new ClientProcess(child);
    await Promise.race([
      once(child, 'message'),
      client.#exited.then(() => Promise.reject(new Error('The client did not start.'))),
    ]);
    return client;
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

  #tell(name: keyof Orders, args: readonly unknown[]): Promise<unknown> {
    this.#orders += 1;
    const order: Order = { order: this.#orders, name, args };
    return new Promise((resolve, reject) => {
      this.#pending.set(order.order, { resolve, reject });
      this.#process.send(order, (error) => {
        if (error) reject(error);
      });
    });
  }
}
