import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { taskset } from '../measure/pinning.ts';
import type { WorkerMethods } from '../worker/methods.ts';

const script = fileURLToPath(new URL('../worker/main.ts', import.meta.url));

const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** No single thing that a client process is asked to do takes as long. */
const CALL_LIMIT_MS = 120_000;

interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: string;
}

interface Pending {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** A client process. It ends when this process does, however that comes. */
export class Worker {
  readonly #child: ChildProcess;
  readonly #pending = new Map<number, Pending>();
  #lastId = 0;

  /** @param cores - as `taskset` takes them; `undefined`: wherever the system puts it */
  constructor(cores: string | undefined, nodeOptions: readonly string[] = []) {
    const node = [process.execPath, ...nodeOptions, script];
    const [command, ...args] = cores === undefined ? node : [taskset, '-c', cores, ...node];
    this.#child = spawn(command as string, args, {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      serialization: 'advanced',
    });
    running.add(this.#child);
    this.#child.on('message', (message) => this.#settle(message as Answer));
    this.#child.once('exit', (code, signal) => {
      running.delete(this.#child);
      this.#failAll(new Error(`A client process ended: ${signal ?? code}.`));
    });
    this.#child.once('error', (error) => this.#failAll(error));
  }

  async call<M extends keyof WorkerMethods>(
    method: M,
    ...args: Parameters<WorkerMethods[M]>
  ): Promise<Awaited<ReturnType<WorkerMethods[M]>>> {
    this.#lastId += 1;
    const id = this.#lastId;
    const answered = new Promise<unknown>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
    });
    const limit = setTimeout(() => {
      this.#failAll(new Error(`A client process gave no answer to ${method} in ${CALL_LIMIT_MS / 1000} s.`));
      this.#child.kill('SIGKILL');
    }, CALL_LIMIT_MS);
    if (this.#child.connected) this.#child.send({ id, method, args });
    else this.#failAll(new Error('The client process has ended.'));
    try {
      return (await answered) as Awaited<ReturnType<WorkerMethods[M]>>;
    } finally {
      clearTimeout(limit);
    }
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }

  #settle({ id, result, error }: Answer): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (error === undefined) pending?.resolve(result);
    else pending?.reject(new Error(`In a client process: ${error}`));
  }

  #failAll(error: Error): void {
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}
