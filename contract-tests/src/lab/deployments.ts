import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { HistoryMode } from '@locks/history';
import type { Proxy } from '@locks/test-servers';
import { startCluster, startEtcdCluster, startProxy, startSentinel } from '@locks/test-servers';
import type { FaultyServer } from '../fault-lab/fault-lab.ts';
import type { RedisAddress } from '../harnesses/redis/address.ts';

/** What runs for one backend of the lab. */
export interface LabDeployment extends AsyncDisposable {
  /** The address for the next worker, and its proxy where it has one. */
  connect(): Promise<{ readonly address: unknown; readonly proxy?: Proxy }>;
  /** The server, where there is one alone. */
  readonly server?: FaultyServer & { restart(options?: { keepData: boolean }): Promise<void> };
  /** Kills the leader or master, waits for another, and starts the killed one again. */
  failOver?(): Promise<void>;
}

/** What the lab knows of a backend. */
export interface LabBackend {
  readonly modes: readonly HistoryMode['kind'][];
  readonly hasTokens: boolean;
  /** Whose default export is a `FaultLab`. */
  readonly module: string;
  /** Of the locks, for workers. Holds end `ttlMs` after their client was last heard of. */
  readonly options: object;
  readonly ttlMs: number;
  /** Whether its server can lose all data at a restart. */
  readonly canLoseData?: boolean;
  deploy(): Promise<LabDeployment>;
}

const TTL_MS = 1_000;
const ALL_MODES = ['exclusive', 'shared', 'permit'] as const;
const TWO_MODES = ['exclusive', 'shared'] as const;

function labModule(path: string): string {
  return new URL(`../../${path}`, import.meta.url).href;
}

/** One server, which every worker reaches through a proxy of its own. */
function single(path: string): Pick<LabBackend, 'module' | 'deploy'> {
  const module = labModule(path);
  return {
    module,
    async deploy() {
      await using stack = new AsyncDisposableStack();
      const { default: Lab } = (await import(module)) as {
        default: new () => AsyncDisposable & { server(): Promise<FaultyServer> };
      };
      const lab = stack.use(new Lab());
      const server = await lab.server();
      const owned = stack.move();
      return {
        server,
        async connect() {
          const proxy = owned.use(await startProxy(server, { protocol: 'raw' }));
          return { address: { host: proxy.host, port: proxy.port }, proxy };
        },
        [Symbol.asyncDispose]: () => owned.disposeAsync(),
      };
    },
  };
}

const redisLab = { modes: ALL_MODES, hasTokens: true, ttlMs: TTL_MS } as const;
const redisOptions = { ttlMs: TTL_MS, backend: { claimMs: 300, checkIntervalMs: 200 } };

export const labBackends: Readonly<Record<string, LabBackend>> = {
  sqlite: {
    modes: ALL_MODES,
    hasTokens: true,
    ttlMs: TTL_MS,
    options: { ttlMs: TTL_MS },
    module: new URL('sqlite-lab.ts', import.meta.url).href,
    async deploy() {
      const folder = await mkdtemp(join(tmpdir(), 'locks-lab-'));
      return {
        connect: async () => ({ address: { path: join(folder, 'locks.db') } }),
        [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
      };
    },
  },
  'redis-ioredis': {
    ...redisLab,
    ...single('redis-faults/lab.ts'),
    options: { ...redisOptions, library: 'redis-ioredis' },
    canLoseData: true,
  },
  'redis-node': {
    ...redisLab,
    ...single('redis-faults/lab.ts'),
    options: { ...redisOptions, library: 'redis-node' },
    canLoseData: true,
  },
  'redis-ioredis-sentinel': {
    ...redisLab,
    module: labModule('redis-faults/lab.ts'),
    options: { ...redisOptions, library: 'redis-ioredis' },
    async deploy() {
      const deployment = await startSentinel();
      const sentinels = deployment.sentinels.map(({ host, port }) => ({ host, port }));
      const address: RedisAddress = { kind: 'sentinel', name: deployment.name, sentinels };
      return {
        connect: async () => ({ address }),
        async failOver() {
          const master = await deployment.master();
          await master.kill();
          await deployment.waitForNewMaster(master.port);
          await master.restart({ keepData: true });
          await deployment.waitUntilReady();
        },
        [Symbol.asyncDispose]: () => deployment.stop(),
      };
    },
  },
  'redis-ioredis-cluster': {
    ...redisLab,
    // A set of locks on several nodes is taken member by member.
    module: labModule('redis-faults/lab.ts'),
    options: { ...redisOptions, library: 'redis-ioredis' },
    async deploy() {
      const cluster = await startCluster();
      const roots = cluster.roots.map(({ host, port }) => ({ host, port }));
      const address: RedisAddress = { kind: 'cluster', roots };
      return {
        connect: async () => ({ address }),
        async failOver() {
          const slot = cluster.slotOf('{lock:lock-set}');
          const master = await cluster.slotOwner(slot);
          await master.kill();
          await cluster.waitForNewOwner(slot, master.port);
          await master.restart({ keepData: true });
          await cluster.waitUntilReady();
        },
        [Symbol.asyncDispose]: () => cluster.stop(),
      };
    },
  },
  'postgres-lease': {
    modes: ALL_MODES,
    hasTokens: true,
    ttlMs: TTL_MS,
    options: { ttlMs: TTL_MS },
    ...single('postgres-faults/lease-lab.ts'),
  },
  'postgres-advisory': {
    modes: TWO_MODES,
    hasTokens: false,
    ttlMs: 3_000,
    options: {},
    ...single('postgres-faults/advisory-lab.ts'),
  },
  mysql: {
    modes: ALL_MODES,
    hasTokens: true,
    ttlMs: TTL_MS,
    options: { ttlMs: TTL_MS },
    ...single('mysql-faults/lab.ts'),
  },
  zookeeper: {
    modes: TWO_MODES,
    hasTokens: true,
    ttlMs: 2_000,
    options: {},
    ...single('zookeeper-faults/lab.ts'),
  },
  etcd: {
    modes: ALL_MODES,
    hasTokens: true,
    ttlMs: 2_000,
    options: { ttlMs: 2_000 },
    ...single('etcd-faults/lab.ts'),
  },
  'etcd-cluster': {
    modes: ALL_MODES,
    hasTokens: true,
    ttlMs: 2_000,
    options: { ttlMs: 2_000 },
    module: labModule('etcd-faults/lab.ts'),
    async deploy() {
      const cluster = await startEtcdCluster();
      return {
        connect: async () => ({ address: cluster.hosts }),
        async failOver() {
          const leader = await cluster.leader();
          await leader.kill();
          await cluster.waitForNewLeader(leader);
          await leader.restart();
        },
        [Symbol.asyncDispose]: () => cluster.stop(),
      };
    },
  },
};
