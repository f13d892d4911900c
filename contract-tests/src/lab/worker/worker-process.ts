import { type SpawnOptions, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { CallableProcess } from '@locks/core/conformance/process';
import type { Proxy, ProcessNetwork } from '@locks/test-servers';
import { SpokenProcess } from './spoken-process.ts';
import type { LabWorkerCommands, LabWorkerSetup } from './worker-commands.ts';

const WORKER_MAIN = fileURLToPath(new URL('main.ts', import.meta.url));

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

/** A worker in another language. */
class SpokenWorker extends SpokenProcess implements WorkerProcess {
  readonly call: LabWorkerCommands = {
    start: async () => void (await this.ask('start')),
    block: async (ms) => void (await this.ask('block', ms)),
    stop: async () => void (await this.ask('stop')),
    ghosts: async (withinMs) =>
      (await this.ask('ghosts', withinMs)) as Awaited<ReturnType<LabWorkerCommands['ghosts']>>,
  };
}
