import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { CallableProcess } from '@locks/core/conformance/process';
import type { Proxy, ProcessNetwork } from '@locks/test-servers';
import type { LabWorkerCommands, LabWorkerSetup } from './worker-commands.ts';

const WORKER_MAIN = fileURLToPath(new URL('main.ts', import.meta.url));
/** A program of another language may take its time on a busy machine. */
const START_MS = 60_000;

/** A worker of the lab, seen from the outside. */
export interface WorkerProcess {
  readonly call: LabWorkerCommands;
  freeze(): void;
  thaw(): void;
  kill(): Promise<void>;
}

/** Where a worker runs, and in what. */
export interface WorkerStart {
  /** The program of a worker in another language, and its arguments. */
  readonly program: readonly [string, ...string[]] | undefined;
  /** The network of the worker alone. */
  readonly network: ProcessNetwork | undefined;
  /** What the worker reaches in its network. */
  readonly proxies: readonly Proxy[];
}

/** @throws Error when the worker is not ready in time */
export async function startWorker(
  setup: LabWorkerSetup,
  { program, network, proxies }: WorkerStart,
): Promise<WorkerProcess> {
  const [command, ...args] = program ?? [process.execPath, WORKER_MAIN];
  const options: SpawnOptions =
    program === undefined
      ? { serialization: 'advanced', stdio: ['ignore', 'inherit', 'inherit', 'ipc'] }
      : { stdio: ['pipe', 'pipe', 'inherit'] };
  const all = [...args, JSON.stringify(setup)];
  const child =
    network === undefined
      ? spawn(command, all, options)
      : await network.start([command, ...all], options, proxies);
  const worker =
    program === undefined ? new CallableProcess<LabWorkerCommands>(child) : new SpokenWorker(child);
  await worker.ready();
  return worker;
}

/**
 * A worker in another language. It answers each line of its standard input, a command with its arguments as a JSON list, with a line of
 * JSON, after a line of its own when it is ready. It ends with its input.
 */
class SpokenWorker implements WorkerProcess {
  readonly call: LabWorkerCommands = {
    start: async () => void (await this.#ask('start')),
    stop: async () => void (await this.#ask('stop')),
    ghosts: async (withinMs) =>
      (await this.#ask('ghosts', withinMs)) as Awaited<ReturnType<LabWorkerCommands['ghosts']>>,
  };
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  readonly #waiting: { resolve(line: string): void; reject(error: Error): void }[] = [];
  readonly #isReady: Promise<unknown>;

  constructor(child: ChildProcess) {
    this.#child = child;
    const { stdin, stdout } = child;
    if (stdin === null || stdout === null) throw new Error('A worker has no pipes.');
    stdin.on('error', () => undefined);
    this.#ended = once(child, 'close');
    void this.#ended.then(() => {
      for (const { reject } of this.#waiting) reject(new Error('The process ended.'));
    });
    this.#isReady = this.#line();
    createInterface({ input: stdout }).on('line', (line) => this.#waiting.shift()?.resolve(line));
  }

  async ready(): Promise<void> {
    const limit = setTimeout(() => this.#child.kill('SIGKILL'), START_MS);
    try {
      await this.#isReady;
    } finally {
      clearTimeout(limit);
    }
  }

  freeze(): void {
    this.#child.kill('SIGSTOP');
  }

  thaw(): void {
    this.#child.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  async #ask(...command: readonly unknown[]): Promise<unknown> {
    this.#child.stdin?.write(`${JSON.stringify(command)}\n`);
    return JSON.parse(await this.#line());
  }

  #line(): Promise<string> {
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }
}
