import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ProcessNetwork, Proxy } from '@locks/test-servers';
import type { Direction } from '@locks/core/conformance/proxy';
import type { ServerClock } from './conditions/server-clock.ts';
import type { SmallDisk } from './conditions/small-disk.ts';
import { FEW_CONNECTIONS, type LabBackend, type LabDeployment } from './deployments.ts';
import type { SeededRandom } from './random.ts';
import type { WorkerProcess } from './worker/worker-process.ts';

/** A worker that runs, with the proxies between it and the servers. */
export interface RunningWorker {
  readonly name: string;
  readonly process: WorkerProcess;
  readonly proxies: readonly Proxy[];
  /** Where the worker has a network of its own, and the nemesis loses its packets. */
  readonly network: ProcessNetwork | undefined;
}

/** What a nemesis may reach. */
export interface NemesisContext {
  readonly backend: LabBackend;
  readonly deployment: LabDeployment;
  readonly random: SeededRandom;
  /** Of a nemesis that needs them. */
  readonly clock?: ServerClock | undefined;
  readonly disk?: SmallDisk | undefined;
  workers(): readonly RunningWorker[];
  /** Kills a worker, notes its crash, and starts another in its place. */
  replace(worker: RunningWorker): Promise<void>;
}

/** One kind of fault, which is made again and again while workloads run. */
export interface Nemesis {
  /** For the page of the results. */
  readonly about: string;
  /** With what the servers must be started. */
  readonly needs?: 'clock' | 'disk' | 'few connections';
  /** Whether a thread renews the leases of its workers while they are blocked, for up to {@link maxBlockedMsOf}. */
  readonly hasThreads?: boolean;
  /** Whether it loses the packets of workers that have a network of their own, where the machine can make these. */
  readonly losesPackets?: boolean;
  applies(backend: LabBackend, deployment: LabDeployment): boolean;
  /** One fault, healed when it resolves. */
  strike(context: NemesisContext): Promise<void>;
}

const hasServer = (_: LabBackend, { server }: LabDeployment): boolean => server !== undefined;
const hasElection = (_: LabBackend, { election }: LabDeployment): boolean => election !== undefined;
const hasNetwork = (backend: LabBackend, deployment: LabDeployment): boolean =>
  hasServer(backend, deployment) || hasElection(backend, deployment);

/** A network fault between some of the workers and all servers. */
function onNetwork(
  about: string,
  breakNetwork: (proxies: readonly Proxy[], random: SeededRandom) => void,
): Nemesis {
  return {
    about,
    applies: hasNetwork,
    async strike({ backend, random, workers }) {
      const hit = workers().filter(() => random.next() < 0.5);
      const proxies = hit.flatMap((worker) => worker.proxies);
      for (const worker of hit) breakNetwork(worker.proxies, random);
      await sleep(durationOf(backend, random));
      await Promise.all(proxies.map((proxy) => proxy.heal()));
    },
  };
}

/**
 * What is sent is lost, in one direction or in both: as packets, which TCP sends again, where workers have networks of their own; else as
 * the data of connections, which the proxy cuts when it heals.
 */
function onPackets(about: string, draw: (random: SeededRandom) => Direction | undefined): Nemesis {
  return {
    about,
    losesPackets: true,
    applies: hasNetwork,
    async strike({ backend, random, workers }) {
      const hit = workers().filter(() => random.next() < 0.5);
      for (const { network, proxies } of hit) {
        const direction = draw(random);
        if (network !== undefined) await network.lose(direction);
        else for (const proxy of proxies) proxy.blackhole(direction === undefined ? {} : { direction });
      }
      await sleep(durationOf(backend, random));
      for (const { network, proxies } of hit) {
        if (network !== undefined) await network.heal();
        else await Promise.all(proxies.map((proxy) => proxy.heal()));
      }
    },
  };
}

/** Short of what a hold lasts, or past it. */
function durationOf({ ttlMs }: LabBackend, random: SeededRandom): number {
  return random.next() < 0.5 ? random.between(20, ttlMs / 2) : random.between(ttlMs, 1.6 * ttlMs);
}

export const nemeses = {
  none: {
    about: 'nothing',
    applies: () => true,
    strike: () => sleep(200),
  },
  pause: {
    about: 'a client process stands still (SIGSTOP), half of the times for longer than a hold lasts',
    applies: () => true,
    async strike({ backend, random, workers }) {
      const worker = random.one(workers());
      worker.process.freeze();
      await sleep(durationOf(backend, random));
      worker.process.thaw();
    },
  },
  kill: {
    about: 'a client process is killed (SIGKILL), and another one starts',
    applies: () => true,
    async strike({ random, workers, replace }) {
      await replace(random.one(workers()));
      await sleep(random.between(100, 600));
    },
  },
  cut: onNetwork('connections of clients are reset, and new ones refused, for a while', (proxies) => {
    for (const proxy of proxies) {
      proxy.refuse();
      proxy.cut();
    }
  }),
  'cut-one-way': onPackets('what clients send arrives, and no answer; or the other way round', (random) =>
    random.one(['toServer', 'toClient'] as const),
  ),
  reset: onNetwork('connections of clients are reset; new ones succeed', (proxies) => {
    for (const proxy of proxies) proxy.cut();
  }),
  slow: onNetwork('every message of clients takes 50 to 300 ms', (proxies, random) => {
    const ms = random.between(25, 150);
    for (const proxy of proxies) proxy.latency(ms);
  }),
  blackhole: onPackets('clients and server hear nothing of each other, and get no error', () => undefined),
  freeze: {
    about: 'the server stands still (SIGSTOP)',
    applies: hasServer,
    async strike({ backend, deployment, random }) {
      await deployment.server?.pause();
      await sleep(durationOf(backend, random));
      deployment.server?.resume();
    },
  },
  restart: {
    about: 'the server is killed and starts again with its data',
    applies: hasServer,
    async strike({ deployment }) {
      await deployment.server?.restart({ keepData: true });
    },
  },
  'restart-empty': {
    about: 'the server is killed and starts again without its data',
    applies: ({ canLoseData }) => canLoseData === true,
    async strike({ deployment }) {
      await deployment.server?.restart({ keepData: false });
    },
  },
  failover: {
    about: 'the master or leader is killed, another one takes over, and the killed one comes back',
    applies: hasElection,
    async strike({ deployment: { election } }) {
      const leader = await election?.leader();
      await leader?.kill();
      if (leader !== undefined) await election?.untilReplaced(leader);
      await leader?.restart({ keepData: true });
      await election?.untilReady?.();
    },
  },
  'freeze-leader': {
    about: 'the master or leader stands still (SIGSTOP) until another one has taken over, and then goes on',
    applies: hasElection,
    async strike({ deployment: { election } }) {
      const leader = await election?.leader();
      await leader?.pause();
      try {
        if (leader !== undefined) await election?.untilReplaced(leader);
      } finally {
        leader?.resume();
      }
      await election?.untilReady?.();
    },
  },
  'freeze-follower': {
    about: 'a replica or follower stands still (SIGSTOP)',
    applies: hasElection,
    async strike({ backend, deployment: { election }, random }) {
      const follower = await election?.follower();
      await follower?.pause();
      await sleep(durationOf(backend, random));
      follower?.resume();
      await election?.untilReady?.();
    },
  },
  'clock-forward': onClock(
    'the wall clock of the servers is set forward, half of the times by more than a hold lasts',
    1,
  ),
  'clock-back': onClock(
    'the wall clock of the servers is set back, half of the times by more than a hold lasts',
    -1,
  ),
  'disk-full': {
    about:
      'the disk of the server has no space left for a while; a server that ends because of it is started again',
    needs: 'disk',
    applies: ({ diskMb }) => diskMb !== undefined,
    async strike({ backend, deployment: { server }, random, disk }) {
      disk?.fill();
      await sleep(durationOf(backend, random));
      await disk?.free();
      if (server?.running === false) await server.restart({ keepData: true });
      await sleep(random.between(100, 600));
    },
  },
  'connection-limit': {
    about: 'strangers take all connections that the server admits, and those of clients are reset',
    needs: 'few connections',
    applies: ({ stranger }) => stranger !== undefined,
    async strike({ backend, deployment: { server }, random, workers }) {
      const { host, port } = server ?? {};
      const sockets = Array.from({ length: FEW_CONNECTIONS }, (): Socket => {
        const socket = connect({ host, port: port ?? 0 });
        socket.on('error', () => undefined);
        socket.once('connect', () => socket.write(backend.stranger ?? ''));
        return socket;
      });
      for (const { proxies } of workers()) for (const proxy of proxies) proxy.cut();
      await sleep(durationOf(backend, random));
      for (const socket of sockets) socket.destroy();
      await sleep(random.between(100, 600));
    },
  },
  storm: {
    about: 'client processes are killed, stand still, and lose their connections, in any order',
    applies: () => true,
    async strike(context): Promise<void> {
      const { backend, deployment } = context;
      const kinds = [nemeses.pause, nemeses.kill, ...(backend.endsWithConnection ? [] : [nemeses.reset])];
      const applicable = kinds.filter((one) => one.applies(backend, deployment));
      await context.random.one(applicable).strike(context);
    },
  },
  // After the others, whose numbers depend on their place.
  block: onLoop('the event loop of a client stands still for 0.2 to 5 times as long as a hold lasts'),
  'block-with-thread': onLoop(
    'the event loop of a client stands still for as long, and a thread renews its leases for 2.5 times as long as a hold lasts at most',
    true,
  ),
} as const satisfies Readonly<Record<string, Nemesis>>;

/** Synchronous work. A worker in another language has no event loop that the lab could block. */
function onLoop(about: string, hasThreads = false): Nemesis {
  return {
    about,
    hasThreads,
    applies: (backend) => backend.worker === undefined && (!hasThreads || backend.hasThreads === true),
    async strike({ backend, random, workers }) {
      await random.one(workers()).process.call.block(random.between(0.2, 5) * backend.ttlMs);
    },
  };
}

/** What a nemesis with renewal threads gives them as `maxBlockedMs`: some blocks are longer, and end a lease. */
export function maxBlockedMsOf({ hasThreads }: Nemesis, { ttlMs }: LabBackend): number | undefined {
  return hasThreads ? 2.5 * ttlMs : undefined;
}

/** Faults of the wall clock, in one direction. */
function onClock(about: string, sign: 1 | -1): Nemesis {
  return {
    about,
    needs: 'clock',
    applies: ({ canSetClock }) => canSetClock === true,
    async strike({ backend, random, clock }) {
      clock?.moveBy(sign * durationOf(backend, random));
      await sleep(random.between(200, backend.ttlMs));
    },
  };
}

export type NemesisName = keyof typeof nemeses;
export const NEMESES = Object.keys(nemeses) as NemesisName[];
