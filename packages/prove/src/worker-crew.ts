import { fork } from 'node:child_process';
import { appendFileSync, existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { LockError } from '@locks/core';
import { CallableProcess, machineNow } from '@locks/core/conformance/process';
import { type Address, type Proxy, startProxy } from '@locks/core/conformance/proxy';
import { HistoryRecorder } from '@locks/history';
import {
  historyFile,
  keyOf,
  type LeftBehind,
  type LoopTimes,
  type OpenedLocks,
  type ProxyRequest,
  type StoreModule,
  type CrewCommands,
  type WorkerSetup,
} from './worker/worker-commands.ts';

/** A worker that runs, with the proxies between it and the servers that it has connected to. */
export interface CrewMember {
  readonly name: string;
  /** Which of the workers it is, or has replaced: a line of the timeline. */
  readonly lane: number;
  readonly process: CallableProcess<CrewCommands>;
  proxies(): Promise<readonly Proxy[]>;
}

export interface CrewSetup extends Pick<WorkerSetup, 'folder' | 'prefix' | 'ttlMs'> {
  readonly store: StoreModule;
  readonly size: number;
  /** How long opening the locks may take, in milliseconds. */
  readonly openMs: number;
}

// Sources run from `src`, and what is published from `dist`.
const SOURCE = new URL('worker/main.ts', import.meta.url);
const WORKER_MAIN = existsSync(SOURCE) ? SOURCE : new URL('worker/main.js', import.meta.url);
/** Every call of a worker ends within its wait: a worker that goes on after that is late. */
const CLOSE_MS = 5_000;

/** The workers of a run. */
export class WorkerCrew implements AsyncDisposable {
  readonly lanes = new Map<string, number>();
  /** Workers that did not end in time. */
  readonly late: string[] = [];
  readonly #setup: CrewSetup;
  readonly #servers = new Set<string>();
  readonly #open = new Map<CrewMember, Map<string, Promise<Proxy>>>();
  #workers: CrewMember[] = [];
  #times: LoopTimes | undefined;
  #names = 0;

  constructor(setup: CrewSetup) {
    this.#setup = setup;
  }

  get workers(): readonly CrewMember[] {
    return this.#workers;
  }

  /** The servers to which workers have connected. */
  get servers(): readonly string[] {
    return [...this.#servers];
  }

  /** Opens the locks in the first worker. */
  async openFirst(): Promise<OpenedLocks> {
    const first = await this.#start(0);
    this.#workers.push(first);
    return await this.#opened(first);
  }

  /** Starts the other workers, and the loops of all. */
  async start(times: LoopTimes): Promise<void> {
    this.#times = times;
    const lanes = Array.from({ length: this.#setup.size - 1 }, (_, index) => index + 1);
    const others = await Promise.all(lanes.map((lane) => this.#start(lane)));
    this.#workers.push(...others);
    await Promise.all(others.map((worker) => this.#opened(worker)));
    await Promise.all(this.#workers.map(({ process }) => process.call.start(times)));
  }

  /** Kills a worker, notes its crash, and starts another in its place. */
  async replace(worker: CrewMember): Promise<void> {
    await this.#kill(worker);
    const next = await this.#start(worker.lane);
    this.#workers.push(next);
    await this.#opened(next);
    if (this.#times !== undefined) await next.process.call.start(this.#times);
  }

  /** Ends the loops of all workers. One that does not end in time is killed, and counts as late. */
  async stop(withinMs: number): Promise<void> {
    await Promise.all(
      this.#workers.map(async (worker) => {
        const isLate = await within(withinMs, worker.process.call.stop());
        if (isLate) {
          this.late.push(worker.name);
          await this.#kill(worker);
          return;
        }
        await within(CLOSE_MS, worker.process.call.close());
        await this.#end(worker);
      }),
    );
  }

  /** What is left when all have stopped; it is removed. */
  async leftBehind(withinMs: number): Promise<readonly LeftBehind[]> {
    const probe = await this.#start(0);
    try {
      await this.#opened(probe);
      const left = await probe.process.call.leftBehind(withinMs);
      await within(CLOSE_MS, probe.process.call.close());
      return left;
    } finally {
      await this.#end(probe);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#open.keys()].map((worker) => this.#end(worker)));
  }

  async #opened({ process }: CrewMember): Promise<OpenedLocks> {
    const limit = setTimeout(() => process.child.kill('SIGKILL'), this.#setup.openMs);
    try {
      return await process.call.open();
    } finally {
      clearTimeout(limit);
    }
  }

  async #start(lane: number): Promise<CrewMember> {
    const { store, folder, prefix, ttlMs } = this.#setup;
    const name = `worker ${(this.#names += 1)}`;
    const setup: WorkerSetup = { ...store, folder, prefix, ttlMs, name };
    const child = fork(fileURLToPath(WORKER_MAIN), [JSON.stringify(setup)], {
      execArgv: [],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    const process = new CallableProcess<CrewCommands>(child);
    const proxies = new Map<string, Promise<Proxy>>();
    const worker = { name, lane, process, proxies: () => Promise.all(proxies.values()) };
    this.#open.set(worker, proxies);
    this.lanes.set(name, lane);
    child.on('message', (message: Partial<ProxyRequest>) => {
      if (message.proxyFor !== undefined) void this.#connect(worker, proxies, message.proxyFor);
    });
    try {
      await process.ready();
    } catch (error) {
      throw new LockError(
        'LOCK_BACKEND',
        `prove(): a worker cannot be started: ${(error as Error).message}`,
        {
          cause: error,
        },
      );
    }
    return worker;
  }

  async #connect(
    { process }: CrewMember,
    proxies: Map<string, Promise<Proxy>>,
    server: Address,
  ): Promise<void> {
    const key = keyOf(server);
    this.#servers.add(key);
    const starting = startProxy(server);
    proxies.set(key, starting);
    const { port } = await starting;
    // A worker that was killed meanwhile needs no answer.
    await process.call.connectThrough(key, port).catch(() => undefined);
  }

  async #kill(worker: CrewMember): Promise<void> {
    // Read before the signal is sent: a store may free what the worker held before its end is reported here.
    const killedAt = machineNow();
    await this.#end(worker);
    this.#workers = this.#workers.filter((one) => one !== worker);
    const file = historyFile(this.#setup.folder, worker.name);
    const append = (line: string): void => appendFileSync(file, line);
    new HistoryRecorder(worker.name, append, () => killedAt).crashed();
  }

  async #end(worker: CrewMember): Promise<void> {
    await worker.process.kill();
    const proxies = this.#open.get(worker)?.values() ?? [];
    this.#open.delete(worker);
    for (const proxy of proxies) await (await proxy).stop();
  }
}

/** Whether some work took longer than a time; its failure counts as an end. */
async function within(ms: number, work: Promise<unknown>): Promise<boolean> {
  const ended = work.then(
    () => false,
    () => false,
  );
  return await Promise.race([ended, sleep(ms, true, { ref: false })]);
}
