import { setTimeout as sleep } from 'node:timers/promises';
import type { CallableProcess } from '@locks/core/conformance/process';
import type { Proxy } from '@locks/test-servers';
import type { LabBackend, LabDeployment } from './deployments.ts';
import type { SeededRandom } from './random.ts';
import type { LabWorkerCommands } from './worker/worker-commands.ts';

/** A worker that runs, with the proxy between it and the server. */
export interface RunningWorker {
  readonly name: string;
  readonly process: CallableProcess<LabWorkerCommands>;
  readonly proxy?: Proxy | undefined;
}

/** What a nemesis may reach. */
export interface NemesisContext {
  readonly backend: LabBackend;
  readonly deployment: LabDeployment;
  readonly random: SeededRandom;
  workers(): readonly RunningWorker[];
  /** Kills a worker, notes its crash, and starts another in its place. */
  replace(worker: RunningWorker): Promise<void>;
}

/** One kind of fault, which is made again and again while workloads run. */
export interface Nemesis {
  /** For the page of the results. */
  readonly about: string;
  applies(backend: LabBackend, deployment: LabDeployment): boolean;
  /** One fault, healed when it resolves. */
  strike(context: NemesisContext): Promise<void>;
}

const behindProxies = (_: LabBackend, { server }: LabDeployment): boolean => server !== undefined;

/** A network fault between some of the workers and the server. */
function onNetwork(about: string, breakNetwork: (proxy: Proxy, random: SeededRandom) => void): Nemesis {
  return {
    about,
    applies: behindProxies,
    async strike({ backend, random, workers }) {
      const hit = workers().filter(() => random.next() < 0.5);
      const proxies = hit.flatMap(({ proxy }) => (proxy === undefined ? [] : [proxy]));
      for (const proxy of proxies) breakNetwork(proxy, random);
      await sleep(durationOf(backend, random));
      await Promise.all(proxies.map((proxy) => proxy.heal()));
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
  cut: onNetwork('connections of clients are reset, and new ones refused, for a while', (proxy) => {
    proxy.refuse();
    proxy.cut();
  }),
  'cut-one-way': onNetwork(
    'what clients send arrives, and no answer; or the other way round',
    (proxy, random) => proxy.blackhole({ direction: random.one(['toServer', 'toClient'] as const) }),
  ),
  reset: onNetwork('connections of clients are reset; new ones succeed', (proxy) => proxy.cut()),
  slow: onNetwork('every message of clients takes 50 to 300 ms', (proxy, random) =>
    proxy.latency(random.between(25, 150)),
  ),
  blackhole: onNetwork('clients and server hear nothing of each other, and get no error', (proxy) =>
    proxy.blackhole(),
  ),
  freeze: {
    about: 'the server stands still (SIGSTOP)',
    applies: behindProxies,
    async strike({ backend, deployment, random }) {
      await deployment.server?.pause();
      await sleep(durationOf(backend, random));
      deployment.server?.resume();
    },
  },
  restart: {
    about: 'the server is killed and starts again with its data',
    applies: behindProxies,
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
    applies: (_, { failOver }) => failOver !== undefined,
    async strike({ deployment }) {
      await deployment.failOver?.();
    },
  },
} as const satisfies Readonly<Record<string, Nemesis>>;

export type NemesisName = keyof typeof nemeses;
export const NEMESES = Object.keys(nemeses) as NemesisName[];
