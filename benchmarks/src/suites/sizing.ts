// One file, a suite: its measurements and the sentences that are made of them.
import { setTimeout as delay } from 'node:timers/promises';
import { runSuite, type Selection } from '../command.ts';
import type { Run } from '../conduct/run.ts';
import { openTestbed, type Testbed } from '../conduct/testbed.ts';
import type { Worker } from '../conduct/worker.ts';
import type { Contender } from '../contenders/contender.ts';
import { median } from '../measure/quantiles.ts';
import { connectionsOf, memoryOf, watchProcessor } from '../measure/server-process.ts';
import { whole } from '../report/figures.ts';
import type { ReportHead } from '../report/head.ts';
import type { Cost, FleetFigures, StoreCosts } from '../sizing/calculator.ts';
import { idleMicros, sizingSections } from '../sizing/sections.ts';
import { allStores, oursOnAllStores } from '../stores/all.ts';
import type { Store } from '../stores/store.ts';
import type { SettingsOptions } from './settings.ts';

interface SizingReport extends ReportHead {
  readonly suite: 'sizing';
  readonly settings: SizingSettings;
  readonly figures: readonly StoreCosts[];
}

interface SizingSettings {
  readonly quick: boolean;
  readonly rounds: number;
  readonly warmUpMs: number;
  readonly blockMs: number;
  /** How long nothing happens but renewals and checks: whole periods of them. */
  readonly idleMs: number;
  readonly leases: number;
  readonly waiters: number;
  readonly processes: readonly number[];
  /** Requests are counted with so many processes. */
  readonly countedWith: number;
}

const full: SizingSettings = {
  quick: false,
  rounds: 3,
  warmUpMs: 2_000,
  blockMs: 1_000,
  idleMs: 2_000,
  leases: 5_000,
  waiters: 1_000,
  processes: [1, 10, 100, 1_000],
  countedWith: 100,
};
const quick: SizingSettings = {
  ...full,
  quick: true,
  rounds: 1,
  warmUpMs: 300,
  blockMs: 200,
  leases: 200,
  waiters: 50,
  processes: [1, 10],
  countedWith: 10,
};

const CHOSEN = [
  'redis-ioredis',
  'postgres lease',
  'postgres advisory',
  'mysql',
  'etcd',
  'zookeeper',
  'sqlite',
];
/** Their sessions keep the leases. */
const SESSIONS = ['@locks/postgres advisory', '@locks/zookeeper'];
/** Leases are renewed every second. */
const TTL_MS = 3_000;
const LANES = 64;
const WARM_UP_LEASES = 1_000;
/** Waiters of each of the two processes that hand a lock to each other. */
const HAND_OFF_LANES = 2;
/** After an arrival: it costs more than what is measured. */
const SETTLE_MS = 1_200;
const MOST_OF_A_PROCESS = 250;
/** A process of PostgreSQL has a connection to listen and, at times, two of its pool. */
const MOST_CONNECTIONS = 4_000;
/** The server runs on one. */
const MOST_CORES = 1;

/** `bench sizing`: what each thing costs the server and the client, alone and with up to 1 000 connected processes. */
export async function sizingSuite(args: readonly string[]): Promise<number> {
  return await runSuite<SizingReport>(
    {
      name: 'sizing',
      rows: ['costs', 'processes'],
      contenders: async () =>
        (await oursOnAllStores()).filter(({ name }) => CHOSEN.some((chosen) => name === `@locks/${chosen}`)),
      measure,
      sectionsOf: ({ figures }) => sizingSections(figures),
      judge: () => [],
    },
    args,
  );
}

type Costs = Omit<StoreCosts, 'backend' | 'ttlMs' | 'fleets'>;

async function measure(
  options: SettingsOptions,
  selection: Selection<Contender>,
  run: Run,
): Promise<SizingReport> {
  const base = options.quick ? quick : full;
  const settings = { ...base, rounds: options.rounds ?? base.rounds };
  const figures: StoreCosts[] = [];
  for (const store of allStores) {
    for (const contender of selection.contenders.filter(({ store: id }) => id === store.id)) {
      // Each on a fresh server: what was left there would be counted.
      const part = async <T>(what: string, work: (testbed: Testbed) => Promise<T>): Promise<T | undefined> =>
        await run.progress.part(what, () =>
          run.on(() => openTestbed(() => store.start(MOST_CONNECTIONS)), [contender], work),
        );
      const costs = selection.rows.has('costs')
        ? await part(`costs ${contender.name}`, (testbed) => measureCosts(testbed, contender, settings))
        : undefined;
      const fleets: FleetFigures[] = [];
      let endsBecause: string | undefined;
      for (const processes of selection.rows.has('processes') && hasServer(store) ? settings.processes : []) {
        endsBecause = tooMany(processes, fleets.at(-1));
        if (endsBecause !== undefined) break;
        const what = `processes ${contender.name}, ${processes}`;
        const fleet = await part(what, (testbed) => measureFleet(testbed, contender, processes, settings));
        if (fleet === null) {
          endsBecause = `with ${whole(processes)} processes, leases were lost on one core`;
          break;
        }
        if (fleet !== undefined) fleets.push(fleet);
      }
      figures.push({
        backend: contender.name,
        ttlMs: TTL_MS,
        ...(SESSIONS.includes(contender.name) && { isSession: true }),
        ...(costs ?? noCosts),
        fleets,
        ...(endsBecause && { endsBecause }),
      });
    }
  }
  return run.report('sizing', { settings, figures });
}

/** Leases end on a server that cannot answer their renewals in time. */
function tooMany(processes: number, last: FleetFigures | undefined): string | undefined {
  const cores = last === undefined ? 0 : (idleMicros(last) * processes) / last.processes / 1e6;
  return cores > MOST_CORES
    ? `${whole(processes)} processes would need ${cores.toFixed(1)} cores of the server`
    : undefined;
}

function hasServer({ id }: Store): boolean {
  return id !== 'local';
}

/** What is measured during a time: by its server, by its clients. */
class Watch {
  readonly #testbed: Testbed;
  readonly #clients: readonly Worker[];

  constructor(testbed: Testbed, clients: readonly Worker[]) {
    this.#testbed = testbed;
    this.#clients = clients;
  }

  /** The cost of each of what `work` counts: the median of the rounds, and the requests of one more round. */
  async costOf(rounds: number, work: () => Promise<number>, counted = true): Promise<Cost> {
    const all: Omit<Cost, 'requests'>[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const { pid } = this.#testbed.server;
      const server = pid === undefined ? () => 0 : watchProcessor(pid);
      const client = await this.#clientMicros();
      const times = await work();
      const serverMicros = server() / times;
      all.push({ serverMicros, clientMicros: ((await this.#clientMicros()) - client) / times });
    }
    return {
      serverMicros: median(all.map(({ serverMicros }) => serverMicros)),
      clientMicros: median(all.map(({ clientMicros }) => clientMicros)),
      ...(counted && { requests: await this.#requestsOf(work) }),
    };
  }

  async #requestsOf(work: () => Promise<number>): Promise<number> {
    const [{ total }, times] = await this.#testbed.meter.count(work);
    return total / times;
  }

  async #clientMicros(): Promise<number> {
    const spent = await Promise.all(this.#clients.map((client) => client.call.spent()));
    return spent.reduce((sum, { cpuMicros }) => sum + cpuMicros, 0);
  }
}

async function measureCosts(
  testbed: Testbed,
  contender: Contender,
  settings: SizingSettings,
): Promise<Costs> {
  const { rounds, warmUpMs, blockMs, idleMs, leases, waiters } = settings;
  const [one, other] = (await testbed.workersOf(contender, 2)) as [Worker, Worker];
  const pairs = async (forMs = blockMs) => (await one.call.loop({ names: ['sizing:pair'], forMs })).pairs;
  await pairs(warmUpMs);
  const pair = await new Watch(testbed, [one]).costOf(rounds, pairs);
  const handOff = await measureHandOffs(testbed, [one, other], settings);
  await testbed.endWorkers(contender);

  const idle = async (each: number): Promise<number> => {
    await delay(idleMs);
    return each;
  };
  // A process of its own for waiters and for leases: what is freed of one would make the other look small.
  const queue = await openManager(testbed, contender);
  const watch = new Watch(testbed, [queue]);
  const nothing = await watch.costOf(1, () => idle(1), false);
  const joined = await grown(testbed, waiters, () => queue.call.join('sizing:waiters', waiters));
  await delay(SETTLE_MS);
  const waiter = await watch.costOf(rounds, () => idle((waiters * idleMs) / 1_000));
  await queue.call.serve();
  await testbed.end(queue);

  const holder = await openManager(testbed, contender);
  const watchHolder = new Watch(testbed, [holder]);
  const periods = idleMs / (TTL_MS / 3);
  const held = await grown(testbed, leases, () => holder.call.holdMore(leases, LANES));
  await delay(SETTLE_MS);
  const renewal = await watchHolder.costOf(rounds, () => idle(leases * periods));
  const canList = (await holder.call.list()) > 0;
  const listed = canList ? await watchHolder.costOf(rounds, () => holder.call.list()) : undefined;
  await testbed.end(holder);
  return {
    pair,
    handOff,
    renewal: beyond(renewal, nothing, 1 / (leases * periods)),
    waiter: beyond(waiter, nothing, 1_000 / (waiters * idleMs)),
    ...(listed && { listed }),
    bytes: {
      leaseServer: held.server,
      leaseClient: held.client,
      waiterServer: joined.server,
      waiterClient: joined.client,
    },
  };
}

/** A process with one lock manager, whose code has run. */
async function openManager(testbed: Testbed, { store, name }: Contender): Promise<Worker> {
  const worker = testbed.startWorker(['--expose-gc']);
  await worker.call.openLocks(store, name, testbed.url, TTL_MS);
  await worker.call.holdMore(WARM_UP_LEASES, LANES);
  await worker.call.letGo();
  await delay(SETTLE_MS);
  return worker;
}

/** Two processes that hand one lock to each other, without a pause. */
async function measureHandOffs(
  testbed: Testbed,
  workers: readonly [Worker, Worker],
  { rounds, warmUpMs, blockMs }: SizingSettings,
  counted = true,
): Promise<Costs['handOff']> {
  const names = Array.from({ length: HAND_OFF_LANES }, () => 'sizing:hand-off');
  let [elapsedMs, handOffs] = [0, 0];
  const take = async (forMs = blockMs): Promise<number> => {
    const from = performance.now();
    const all = await Promise.all(workers.map((worker) => worker.call.loop({ names, forMs })));
    elapsedMs += performance.now() - from;
    const pairs = all.reduce((sum, each) => sum + each.pairs, 0);
    handOffs += pairs;
    return pairs;
  };
  await take(warmUpMs);
  [elapsedMs, handOffs] = [0, 0];
  const cost = await new Watch(testbed, workers).costOf(rounds, take, counted);
  return { ...cost, ms: elapsedMs / handOffs };
}

/** Bytes for each of what was added. */
async function grown(
  { server }: Testbed,
  count: number,
  add: () => Promise<{ readonly heapBytes: number }>,
): Promise<{ readonly server: number; readonly client: number }> {
  const before = await server.storedBytes?.();
  const { heapBytes } = await add();
  const after = await server.storedBytes?.();
  return { client: heapBytes / count, server: ((after ?? 0) - (before ?? 0)) / count };
}

/** So many processes: connected, then each holds a lease, then each waits for another one's as well. `null`: they lost leases meanwhile. */
async function measureFleet(
  testbed: Testbed,
  contender: Contender,
  processes: number,
  settings: SizingSettings,
): Promise<FleetFigures | null> {
  const { idleMs, countedWith, blockMs } = settings;
  // The server has warmed up: the early hand-offs did that.
  const warmUpMs = Math.min(settings.warmUpMs, blockMs);
  // Small fleets are not what a sum is made of: one round is enough of them.
  const rounds = processes < countedWith ? 1 : settings.rounds;
  const { server, url } = testbed;
  const { pid = Number.NaN, network } = server;
  const port = network?.addresses[0]?.port ?? Number.NaN;
  const idle = async (): Promise<number> => {
    await delay(idleMs);
    return (processes * idleMs) / 1_000;
  };
  // A server whose code and memory have not settled yet would count as the cost of the first processes.
  const early = (await testbed.workersOf(contender, 2)) as [Worker, Worker];
  await measureHandOffs(testbed, early, { ...settings, rounds: 1, warmUpMs: 0 }, false);
  await testbed.endWorkers(contender);
  await delay(SETTLE_MS);
  const workers: Worker[] = [];
  const nothing = await new Watch(testbed, workers).costOf(1, idle, processes === countedWith);
  const [bytesBefore, connectionsBefore] = [memoryOf(pid), connectionsOf(port)];

  for (let first = 0; first < processes; first += MOST_OF_A_PROCESS)
    workers.push(testbed.startWorker(['--expose-gc']));
  const heaps = await Promise.all(
    workers.map((worker, index) => {
      const first = index * MOST_OF_A_PROCESS;
      const count = Math.min(MOST_OF_A_PROCESS, processes - first);
      const { store, name } = contender;
      return worker.call.openFleet({
        store,
        contender: name,
        url,
        ttlMs: TTL_MS,
        first,
        count,
        total: processes,
      });
    }),
  );
  const watch = new Watch(testbed, workers);
  const measured = async (times: number): Promise<Cost> => {
    await delay(SETTLE_MS);
    return await watch.costOf(times, idle, processes === countedWith);
  };
  const connected = await measured(1);
  await Promise.all(workers.map((worker) => worker.call.holdInFleet()));
  const holding = await measured(rounds);
  await Promise.all(workers.map((worker) => worker.call.waitInFleet()));
  const waiting = await measured(rounds);
  const intact = await Promise.all(workers.map((worker) => worker.call.isFleetIntact()));
  if (intact.includes(false)) return null;
  const [bytes, connections] = [memoryOf(pid) - bytesBefore, connectionsOf(port) - connectionsBefore];

  const pair = (await testbed.workersOf(contender, 2)) as [Worker, Worker];
  const handOff = await measureHandOffs(testbed, pair, { ...settings, rounds, warmUpMs }, false);
  return {
    processes,
    connected: beyond(connected, nothing),
    holding: beyond(holding, connected),
    waiting: beyond(waiting, holding),
    connections: connections / processes,
    serverBytes: bytes / processes,
    clientBytes: median(heaps),
    handOffMs: handOff.ms,
    handOffServerMicros: handOff.serverMicros - (handOff.ms * waiting.serverMicros * processes) / 1_000,
  };
}

/** What one cost has more than another, a part of which it contains; what is less than that is noise. */
function beyond(cost: Cost, contained: Cost, part = 1): Cost {
  return {
    serverMicros: Math.max(0, cost.serverMicros - part * contained.serverMicros),
    clientMicros: Math.max(0, cost.clientMicros - part * contained.clientMicros),
    ...(cost.requests !== undefined && {
      requests: Math.max(0, cost.requests - part * (contained.requests ?? 0)),
    }),
  };
}

const noCost: Cost = { serverMicros: 0, clientMicros: 0 };
const noCosts: Costs = {
  pair: noCost,
  handOff: { ...noCost, ms: 0 },
  renewal: noCost,
  waiter: noCost,
  bytes: { leaseServer: 0, leaseClient: 0, waiterServer: 0, waiterClient: 0 },
};
