import { appendFileSync, globSync, mkdirSync, writeFileSync } from 'node:fs';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { machineNow } from '@locks/core/conformance/process';
import { checkHistory, HistoryRecorder, historyToEdn, readHistory } from '@locks/history';
import { canSeparateNetworks, ProcessNetwork, underConditions } from '@locks/test-servers';
import { makeServerClock, type ServerClock } from './conditions/server-clock.ts';
import { makeSmallDisk, type SmallDisk } from './conditions/small-disk.ts';
import type { LabBackend, LabDeployment } from './deployments.ts';
import { labBackends } from './lab-backends.ts';
import { SetKeeper } from './kept-set.ts';
import type { LabResult } from './lab-report.ts';
import {
  type Nemesis,
  type NemesisContext,
  type NemesisName,
  maxBlockedMsOf,
  nemeses,
  type RunningWorker,
} from './nemeses.ts';
import { peers } from './peers/peers.ts';
import type { SeededRandom } from './random.ts';
import { historyFile, type LabWorkerSetup } from './worker/worker-commands.ts';
import { startWorker } from './worker/worker-process.ts';
import { type Workload, workloadsOf } from './workloads.ts';

const WORKERS = 3;
const HOLD_MS = 6;
/** Workers end within this: every call of theirs has a deadline. */
const STOP_MS = 60_000;
const MOST_STARTS = 4;
/** What holds a resource for this many times as long as a hold lasts is a ghost. */
const GHOST_TTLS = 3;

export interface LabRun {
  readonly backend: string;
  readonly nemesis: NemesisName;
  readonly seconds: number;
  readonly random: SeededRandom;
  readonly workloads?: readonly Workload[] | undefined;
  /** Where the histories are kept. Absent: nowhere. */
  readonly histories?: string | undefined;
  /** Where the history of each workload is written in the EDN of Jepsen. Absent: nowhere. */
  readonly edn?: string | undefined;
  /** Where the trace of each worker is written, for `locks verify`. Absent: nowhere. */
  readonly trace?: string | undefined;
  /** Receives the sentences of violations. */
  readonly onViolation?: (sentence: string) => void;
  /** Receives what a nemesis that applies would need of the machine. */
  readonly onMissing?: (missing: string) => void;
}

function missingFor({ needs }: Nemesis, made: ServerClock | SmallDisk | undefined): string | undefined {
  if (made !== undefined) return undefined;
  if (needs === 'clock') return 'clocks of servers are set with Linux and gcc';
  if (needs === 'disk') return 'a disk is filled with Linux and root, who mounts it';
  return undefined;
}

/**
 * All workloads of a backend for some seconds under one nemesis; `undefined` where the nemesis does not apply, or needs what is not
 * on this machine.
 *
 * @throws NothingAcquired where a workload acquired nothing: that it broke nothing shows nothing
 */
export async function runLab(run: LabRun): Promise<LabResult[] | undefined> {
  const backend = labBackends[run.backend] ?? peers[run.backend];
  if (backend === undefined) throw new Error(`The lab has no backend ${run.backend}.`);
  const nemesis: Nemesis = nemeses[run.nemesis];
  const lacking = backend.missing?.();
  if (lacking !== undefined) {
    run.onMissing?.(lacking);
    return undefined;
  }
  await using stack = new AsyncDisposableStack();
  const clock = nemesis.needs === 'clock' && backend.canSetClock ? await makeServerClock() : undefined;
  if (clock !== undefined) stack.use(clock);
  const disk = nemesis.needs === 'disk' && backend.diskMb ? await makeSmallDisk(backend.diskMb) : undefined;
  if (disk !== undefined) stack.use(disk);
  const wish = { fewConnections: nemesis.needs === 'few connections', onDisk: disk !== undefined };
  const deployment = stack.use(
    await underConditions({ ...clock?.conditions, ...disk?.conditions }, () => backend.deploy(wish)),
  );
  if (!nemesis.applies(backend, deployment)) return undefined;
  const missing = missingFor(nemesis, clock ?? disk);
  if (missing !== undefined) {
    run.onMissing?.(missing);
    return undefined;
  }
  const folder = await mkdtemp(join(tmpdir(), 'locks-lab-'));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const { histories } = run;
  if (histories !== undefined)
    stack.defer(() => cp(folder, join(histories, run.backend, run.nemesis), { recursive: true }));
  const traces = run.trace === undefined ? undefined : join(run.trace, run.backend, run.nemesis);
  if (traces !== undefined) mkdirSync(traces, { recursive: true });
  const sets = stack.use(new SetKeeper());
  const possible = backend.workloads ?? workloadsOf(backend.modes);
  const workloads = possible.filter((one) => run.workloads?.includes(one) ?? true);
  const hasNetworks = nemesis.losesPackets === true && (await canSeparateNetworks());
  // A worker with a network of its own reaches no port of this machine but those of its proxies.
  const setAt = await sets.listen(hasNetworks ? join(folder, 'kept-set') : undefined);
  const maxBlockedMs = maxBlockedMsOf(nemesis, backend);
  const workerSetup = { workloads, setAt, folder, traces, maxBlockedMs };
  const crew = stack.use(new Crew(backend, deployment, hasNetworks, workerSetup));
  await crew.start();

  const { random } = run;
  const context: NemesisContext = {
    ...{ backend, deployment, random, clock, disk },
    workers: () => crew.workers,
    replace: (worker) => crew.replace(worker),
  };
  let strikes = 0;
  for (const end = machineNow() + run.seconds * 1_000; machineNow() < end; strikes += 1) {
    await sleep(random.between(50, 400));
    await nemesis.strike(context);
  }
  await crew.stop();
  const ghosts = await crew.ghosts();
  return workloads.map((workload) =>
    judge(run, { backend, folder, sets, workload, strikes, ghosts: ghosts[workload] ?? 0 }),
  );
}

interface JudgedRun {
  readonly backend: LabBackend;
  readonly folder: string;
  readonly sets: SetKeeper;
  readonly workload: Workload;
  readonly strikes: number;
  readonly ghosts: number;
}

function judge(run: LabRun, { backend, folder, sets, workload, strikes, ghosts }: JudgedRun): LabResult {
  const files = globSync(historyFile('.', workload, '*'), { cwd: folder }).map((file) => join(folder, file));
  let grants = 0;
  const events = readHistory(...files.sort());
  const counted = (function* () {
    for (const event of events) {
      if (event.type === 'ok' && event.operation === 'acquire') grants += 1;
      yield event;
    }
  })();
  const verdict = checkHistory(counted, ...(backend.hasTokens ? (['fenced'] as const) : []));
  if (run.edn !== undefined) {
    const to = join(run.edn, run.backend, run.nemesis);
    mkdirSync(to, { recursive: true });
    writeFileSync(join(to, `${workload}.edn`), [...historyToEdn(events)].join(''));
  }
  if (grants === 0) throw new NothingAcquired(run, workload);
  for (const { sentence } of verdict.violations) run.onViolation?.(sentence);
  const isSet = workload === 'lock-set';
  return {
    workload,
    nemesis: run.nemesis,
    faults: run.nemesis === 'none' ? 0 : strikes,
    operations: verdict.operations,
    violations: verdict.violations.length,
    longestIdleMs: Math.round(verdict.longestIdleMs),
    ghosts,
    lostWithoutFence: isSet ? sets.lost('plain') : null,
    lostWithFence: isSet && backend.hasTokens ? sets.lost('fenced') : null,
  };
}

/** Calls that all fail violate nothing: a run of such calls is no result. */
export class NothingAcquired extends Error {
  constructor({ backend, nemesis }: Pick<LabRun, 'backend' | 'nemesis'>, workload: Workload) {
    super(`${backend}, ${nemesis}: ${workload} acquired nothing, so nothing was tested`);
  }
}

/** What all workers of a run are told. */
type CrewSetup = Pick<LabWorkerSetup, 'workloads' | 'setAt' | 'folder' | 'traces' | 'maxBlockedMs'>;

/** The workers of a run. */
class Crew implements AsyncDisposable {
  workers: RunningWorker[] = [];
  readonly #backend: LabBackend;
  readonly #deployment: LabDeployment;
  readonly #hasNetworks: boolean;
  readonly #setup: CrewSetup;
  #names = 0;

  /** @param hasNetworks - whether each worker has a network of its own */
  constructor(backend: LabBackend, deployment: LabDeployment, hasNetworks: boolean, setup: CrewSetup) {
    this.#backend = backend;
    this.#deployment = deployment;
    this.#hasNetworks = hasNetworks;
    this.#setup = setup;
  }

  async start(): Promise<void> {
    for (let worker = 0; worker < WORKERS; worker += 1) this.workers.push(await this.#open());
    await Promise.all(this.workers.map((worker) => worker.process.call.start()));
  }

  async replace(worker: RunningWorker): Promise<void> {
    // Read before the signal is sent: a store may free what the worker held before its end is reported here.
    const killedAt = machineNow();
    await end(worker);
    for (const workload of this.#setup.workloads) {
      const file = historyFile(this.#setup.folder, workload, worker.name);
      new HistoryRecorder(
        worker.name,
        (line) => appendFileSync(file, line),
        () => killedAt,
      ).crashed();
    }
    this.workers = this.workers.filter((one) => one !== worker);
    const next = await this.#open();
    this.workers.push(next);
    await next.process.call.start();
  }

  async stop(): Promise<void> {
    const limit = sleep(STOP_MS, 'late', { ref: false });
    const ended = Promise.all(this.workers.map((worker) => worker.process.call.stop()));
    // Those that are late are killed, and end so.
    ended.catch(() => undefined);
    if ((await Promise.race([ended, limit])) === 'late')
      throw new Error(`Workers did not end within ${STOP_MS} ms.`);
  }

  /** What still holds a resource when everybody has stopped, for longer than holds last. */
  async ghosts(): Promise<Partial<Record<Workload, number>>> {
    // Without a thread, for whose start it would have to wait.
    const probe = await this.#open({ ...this.#setup, maxBlockedMs: undefined });
    this.workers.push(probe);
    return await probe.process.call.ghosts(GHOST_TTLS * this.#backend.ttlMs);
  }

  async #open(given = this.#setup): Promise<RunningWorker> {
    this.#names += 1;
    const name = `worker ${this.#names}`;
    // On a busy machine a process may take too long to start: it is killed then, and another one started.
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#start(name, given);
      } catch (error) {
        if (tries >= MOST_STARTS) throw error;
      }
    }
  }

  async #start(name: string, given: CrewSetup): Promise<RunningWorker> {
    await using stack = new AsyncDisposableStack();
    const network = this.#hasNetworks ? stack.use(new ProcessNetwork()) : undefined;
    const { address, proxies } = await this.#deployment.connect(network?.host);
    const { module, options, worker: program } = this.#backend;
    const setup: LabWorkerSetup = { ...given, name, module, address, options, holdMs: HOLD_MS };
    const process = await startWorker(setup, { program, network, proxies });
    stack.move();
    return { name, process, proxies, network };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.workers.map(end));
  }
}

async function end({ process, network }: RunningWorker): Promise<void> {
  await process.kill();
  await network?.[Symbol.asyncDispose]();
}
