import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Address } from '@locks/core/conformance/proxy';
import type { HistoryMode } from '@locks/history';
import {
  type Proxy,
  startCluster,
  startEtcdCluster,
  startPgbouncer,
  startPostgres,
  startProxy,
  startSentinel,
  startZookeeperEnsemble,
  waitUntil,
} from '@locks/test-servers';
import type { FaultyServer } from '../fault-lab/fault-lab.ts';
import type { NatMap, RedisAddress } from '../harnesses/redis/address.ts';
import type { Workload } from './workloads.ts';

/** A server that the lab breaks. */
export interface LabServer extends FaultyServer {
  readonly running: boolean;
  restart(options?: { keepData: boolean }): Promise<void>;
}

/** Servers that elect a leader or master among them. */
export interface LabElection {
  leader(): Promise<LabServer>;
  follower(): Promise<LabServer>;
  /** Resolves when another one leads. */
  untilReplaced(leader: LabServer): Promise<unknown>;
  /** Resolves when all take part again. */
  untilReady?(): Promise<unknown>;
}

/** What runs for one backend of the lab. */
export interface LabDeployment extends AsyncDisposable {
  /**
   * The address for the next worker, and the proxies between it and the servers, where it has any.
   *
   * @param host - where the worker reaches the proxies, if not at 127.0.0.1
   */
  connect(host?: string): Promise<{ readonly address: unknown; readonly proxies: readonly Proxy[] }>;
  /** The server, where there is one alone; where a pooler stands before it, the pooler. */
  readonly server?: LabServer;
  readonly election?: LabElection;
}

/** What a nemesis wants of a deployment. */
export interface DeploymentWish {
  /** The server admits about {@link FEW_CONNECTIONS} connections. */
  readonly fewConnections: boolean;
  /** The server writes what it acknowledges to its disk. */
  readonly onDisk: boolean;
}

/** Enough for the workers of the lab, and quickly taken by strangers. */
export const FEW_CONNECTIONS = 64;

/** What the lab knows of a backend. */
export interface LabBackend {
  readonly modes: readonly HistoryMode['kind'][];
  readonly hasTokens: boolean;
  /** Whose default export has `locks()`, as a `FaultLab`. */
  readonly module: string;
  /** Of the locks, for workers. Holds end `ttlMs` after their client was last heard of. */
  readonly options: object;
  readonly ttlMs: number;
  /** Whether its server can come back without its data. */
  readonly canLoseData?: boolean;
  /** Megabytes of a disk that the server starts on, and that is then filled. Absent: it keeps nothing on a disk that the lab can fill. */
  readonly diskMb?: number;
  /** Whether the clock of its server can be set, by a library that is loaded into it. */
  readonly canSetClock?: boolean;
  /** What a stranger sends to take one of the server's connections. Absent: the server has no limit, or the lab cannot reach it. */
  readonly stranger?: Buffer;
  /** What is missing on this machine for its workers, in a sentence. */
  missing?(): string | undefined;
  /** The program of its workers and its arguments, in another language than this one. Their setup is the last argument. */
  readonly worker?: readonly [string, ...string[]];
  /** Only these workloads, where not all that its modes allow. */
  readonly workloads?: readonly Workload[];
  deploy(wish: DeploymentWish): Promise<LabDeployment>;
}

const TTL_MS = 1_000;
const ALL_MODES = ['exclusive', 'shared', 'permit'] as const;
const TWO_MODES = ['exclusive', 'shared'] as const;

function labModule(path: string): string {
  return new URL(`../../${path}`, import.meta.url).href;
}

/** One server, which every worker reaches through a proxy of its own. `settings` are its options under a wish. */
export function single(
  path: string,
  settings: (wish: DeploymentWish) => object | undefined = () => undefined,
): Pick<LabBackend, 'module' | 'deploy'> {
  const module = labModule(path);
  return {
    module,
    async deploy(wish) {
      await using stack = new AsyncDisposableStack();
      const { default: Lab } = (await import(module)) as {
        default: new () => AsyncDisposable & { server(settings?: object): Promise<LabServer> };
      };
      const lab = stack.use(new Lab());
      const server = await lab.server(settings(wish));
      const owned = stack.move();
      return {
        server,
        async connect(host) {
          const { proxies, at } = await proxiesOf(owned, [server], host);
          return { address: at[0], proxies };
        },
        [Symbol.asyncDispose]: () => owned.disposeAsync(),
      };
    },
  };
}

/** A proxy before each of some servers, with their addresses, and the map from those that the servers announce. */
async function proxiesOf(
  owner: AsyncDisposableStack,
  servers: readonly Address[],
  host?: string,
): Promise<{ proxies: Proxy[]; at: Address[]; natMap: NatMap }> {
  const proxies = await Promise.all(
    servers.map(async (server) => owner.use(await startProxy(server, { protocol: 'raw' }))),
  );
  const at = proxies.map((proxy) => ({ host: host ?? proxy.host, port: proxy.port }));
  const natMap = Object.fromEntries(
    servers.map((server, index) => [`${server.host}:${server.port}`, at[index] as Address]),
  );
  return { proxies, at, natMap };
}

/** The first message of a PostgreSQL client: version 3.0, the user, the database. */
const POSTGRES_STARTUP = startup('user\0postgres\0database\0postgres\0\0');

function startup(parameters: string): Buffer {
  const header = Buffer.alloc(8);
  header.writeInt32BE(8 + parameters.length, 0);
  header.writeInt32BE(3 << 16, 4);
  return Buffer.concat([header, Buffer.from(parameters)]);
}

const postgresSettings = ({ fewConnections }: DeploymentWish): object =>
  fewConnections ? { max_connections: FEW_CONNECTIONS } : {};

const redisLab = { modes: ALL_MODES, hasTokens: true, ttlMs: TTL_MS } as const;
const redisOptions = { ttlMs: TTL_MS, backend: { checkIntervalMs: 200 } };

/** One Redis server, as locks of this repository and of others meet it. */
export const singleRedis = {
  canLoseData: true,
  canSetClock: true,
  diskMb: 4,
  // A connection counts before it has sent anything.
  stranger: Buffer.alloc(0),
} as const;

export function redisSettings({ fewConnections, onDisk }: DeploymentWish): object {
  return {
    args: [
      ...(fewConnections ? ['--maxclients', String(FEW_CONNECTIONS)] : []),
      ...(onDisk ? ['--appendonly', 'yes'] : []),
    ],
  };
}

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
        connect: async () => ({ address: { path: join(folder, 'locks.db') }, proxies: [] }),
        [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
      };
    },
  },
  'redis-ioredis': {
    ...redisLab,
    ...singleRedis,
    ...single('redis-faults/lab.ts', redisSettings),
    options: { ...redisOptions, library: 'redis-ioredis' },
  },
  'redis-node': {
    ...redisLab,
    ...singleRedis,
    ...single('redis-faults/lab.ts', redisSettings),
    options: { ...redisOptions, library: 'redis-node' },
  },
  'redis-ioredis-sentinel': {
    ...redisLab,
    canSetClock: true,
    module: labModule('redis-faults/lab.ts'),
    options: { ...redisOptions, library: 'redis-ioredis' },
    async deploy() {
      const owned = new AsyncDisposableStack();
      const deployment = owned.use(await startSentinel());
      const { name, sentinels, nodes } = deployment;
      return {
        async connect(host) {
          const { proxies, at, natMap } = await proxiesOf(owned, [...sentinels, ...nodes], host);
          const address: RedisAddress = {
            ...{ kind: 'sentinel', name, natMap },
            sentinels: at.slice(0, sentinels.length),
          };
          return { address, proxies };
        },
        election: {
          leader: () => deployment.master(),
          async follower() {
            const master = await deployment.master();
            return found(nodes.find((node) => node !== master));
          },
          untilReplaced: (old) => deployment.waitForNewMaster(old.port),
          untilReady: () => deployment.waitUntilReady(),
        },
        [Symbol.asyncDispose]: () => owned.disposeAsync(),
      };
    },
  },
  'redis-ioredis-cluster': {
    ...redisLab,
    canSetClock: true,
    // A set of locks on several nodes is taken member by member.
    module: labModule('redis-faults/lab.ts'),
    options: { ...redisOptions, library: 'redis-ioredis' },
    async deploy() {
      const owned = new AsyncDisposableStack();
      const cluster = owned.use(await startCluster());
      const slot = cluster.slotOf('{lock:lock-set}');
      return {
        async connect(host) {
          const { proxies, at, natMap } = await proxiesOf(owned, cluster.nodes, host);
          const address: RedisAddress = { kind: 'cluster', roots: at, natMap };
          return { address, proxies };
        },
        election: {
          leader: () => cluster.slotOwner(slot),
          async follower() {
            const views = await cluster.topology();
            const master = await cluster.slotOwner(slot);
            const { id } = found(views.find(({ server }) => server === master));
            return found(views.find(({ masterId }) => masterId === id)).server;
          },
          untilReplaced: (old) => cluster.waitForNewOwner(slot, old.port),
          untilReady: () => cluster.waitUntilReady(),
        },
        [Symbol.asyncDispose]: () => owned.disposeAsync(),
      };
    },
  },
  'postgres-lease': {
    modes: ALL_MODES,
    hasTokens: true,
    ttlMs: TTL_MS,
    options: { ttlMs: TTL_MS },
    canLoseData: true,
    canSetClock: true,
    diskMb: 160,
    stranger: POSTGRES_STARTUP,
    ...single('postgres-faults/lease-lab.ts', postgresSettings),
  },
  'postgres-lease-pgbouncer': {
    modes: ALL_MODES,
    hasTokens: true,
    ttlMs: TTL_MS,
    options: { ttlMs: TTL_MS },
    module: labModule('postgres-faults/lease-lab.ts'),
    async deploy() {
      const owned = new AsyncDisposableStack();
      const postgres = owned.use(await startPostgres());
      const pooler = owned.use(await startPgbouncer(postgres));
      return {
        server: pooler,
        async connect(host) {
          const { proxies, at } = await proxiesOf(owned, [pooler, postgres], host);
          const [through, past] = at;
          const listen = {
            connectionString: `postgres://postgres@${past?.host}:${past?.port}/postgres`,
          };
          return { address: { ...through, listen }, proxies };
        },
        [Symbol.asyncDispose]: () => owned.disposeAsync(),
      };
    },
  },
  'postgres-advisory': {
    modes: TWO_MODES,
    hasTokens: false,
    ttlMs: 3_000,
    options: {},
    canLoseData: true,
    canSetClock: true,
    diskMb: 160,
    stranger: POSTGRES_STARTUP,
    ...single('postgres-faults/advisory-lab.ts', postgresSettings),
  },
  mysql: {
    modes: ALL_MODES,
    hasTokens: true,
    ttlMs: TTL_MS,
    options: { ttlMs: TTL_MS },
    canLoseData: true,
    canSetClock: true,
    diskMb: 256,
    // A connection counts before its client has logged in.
    stranger: Buffer.alloc(0),
    ...single('mysql-faults/lab.ts', ({ fewConnections }) => ({
      args: fewConnections ? [`--max-connections=${FEW_CONNECTIONS}`] : [],
    })),
  },
  zookeeper: {
    modes: TWO_MODES,
    hasTokens: true,
    ttlMs: 2_000,
    options: {},
    canLoseData: true,
    canSetClock: true,
    diskMb: 64,
    stranger: Buffer.alloc(0),
    ...single('zookeeper-faults/lab.ts', ({ fewConnections }) => ({
      config: fewConnections ? [`maxClientCnxns=${FEW_CONNECTIONS}`] : [],
    })),
  },
  'zookeeper-ensemble': {
    modes: TWO_MODES,
    hasTokens: true,
    ttlMs: 2_000,
    options: {},
    canSetClock: true,
    module: labModule('zookeeper-faults/lab.ts'),
    async deploy() {
      const owned = new AsyncDisposableStack();
      const ensemble = owned.use(await startZookeeperEnsemble());
      return {
        async connect(host) {
          const { proxies, at } = await proxiesOf(owned, ensemble.members, host);
          return { address: { address: at.map(({ host, port }) => `${host}:${port}`).join(',') }, proxies };
        },
        election: {
          leader: () => ensemble.leader(),
          follower: () => ensemble.follower(),
          untilReplaced: async (old) =>
            await waitUntil(async () => (await ensemble.leader()) !== old, { what: 'another leader' }),
        },
        [Symbol.asyncDispose]: () => owned.disposeAsync(),
      };
    },
  },
  etcd: {
    modes: ALL_MODES,
    hasTokens: true,
    ttlMs: 2_000,
    options: { ttlMs: 2_000 },
    canLoseData: true,
    diskMb: 160,
    ...single('etcd-faults/lab.ts'),
  },
  'etcd-cluster': {
    modes: ALL_MODES,
    hasTokens: true,
    ttlMs: 2_000,
    options: { ttlMs: 2_000 },
    module: labModule('etcd-faults/lab.ts'),
    async deploy() {
      const owned = new AsyncDisposableStack();
      const cluster = owned.use(await startEtcdCluster());
      return {
        async connect(host) {
          const { proxies, at } = await proxiesOf(owned, cluster.members, host);
          return { address: at.map(({ host, port }) => `http://${host}:${port}`), proxies };
        },
        election: {
          leader: () => cluster.leader(),
          async follower() {
            const leader = await cluster.leader();
            return found(cluster.members.find((member) => member !== leader));
          },
          untilReplaced: (old) =>
            waitUntil(async () => (await cluster.leader()) !== old, { what: 'another leader' }),
        },
        [Symbol.asyncDispose]: () => owned.disposeAsync(),
      };
    },
  },
};

function found<T>(one: T | undefined): T {
  if (one === undefined) throw new Error('There is no such server.');
  return one;
}
