import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Address } from '@locks/core/conformance/proxy';
import type { HistoryMode } from '@locks/history';
import {
  type Proxy,
  startCluster,
  startEtcdCluster,
  startNatsCluster,
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

/** Servers that are started together, and what workers get of their addresses. */
interface Group {
  readonly servers: readonly Address[];
  address(at: readonly Address[], natMap: NatMap): unknown;
  /** Where one of them stands before the others. */
  readonly server?: LabServer;
  readonly election?: LabElection;
}

/** Several servers, which every worker reaches through proxies of its own. */
function several<S extends AsyncDisposable>(
  path: string,
  start: () => Promise<S>,
  groupOf: (started: S, owner: AsyncDisposableStack) => Group | Promise<Group>,
): Pick<LabBackend, 'module' | 'deploy'> {
  return {
    module: labModule(path),
    async deploy() {
      await using stack = new AsyncDisposableStack();
      const { servers, address, ...group } = await groupOf(stack.use(await start()), stack);
      const owned = stack.move();
      return {
        ...group,
        async connect(host) {
          const { proxies, at, natMap } = await proxiesOf(owned, servers, host);
          return { address: address(at, natMap), proxies };
        },
        [Symbol.asyncDispose]: () => owned.disposeAsync(),
      };
    },
  };
}

/** Servers one of which leads at a time. */
function electionOf<S extends LabServer>(
  members: readonly S[],
  leader: () => Promise<S>,
  more: Partial<LabElection> = {},
): LabElection {
  return {
    leader,
    async follower() {
      const leading = await leader();
      return found(members.find((member) => member !== leading));
    },
    untilReplaced: (old) => waitUntil(async () => (await leader()) !== old, { what: 'another leader' }),
    ...more,
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

const leases = (ttlMs: number) => ({ modes: ALL_MODES, hasTokens: true, ttlMs, options: { ttlMs } });
const zookeeperSession = { modes: TWO_MODES, hasTokens: true, ttlMs: 2_000, options: {} } as const;

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
    ...leases(TTL_MS),
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
    options: { ...redisOptions, library: 'redis-ioredis' },
    ...several('redis-faults/lab.ts', startSentinel, (deployment) => {
      const { name, sentinels, nodes } = deployment;
      return {
        servers: [...sentinels, ...nodes],
        address: (at, natMap): RedisAddress => ({
          ...{ kind: 'sentinel', name, natMap },
          sentinels: at.slice(0, sentinels.length),
        }),
        election: electionOf(nodes, () => deployment.master(), {
          untilReplaced: (old) => deployment.waitForNewMaster(old.port),
          untilReady: () => deployment.waitUntilReady(),
        }),
      };
    }),
  },

  'redis-ioredis-cluster': {
    ...redisLab,
    canSetClock: true,
    // A set of locks on several nodes is taken member by member.
    options: { ...redisOptions, library: 'redis-ioredis' },
    ...several('redis-faults/lab.ts', startCluster, (cluster) => {
      const slot = cluster.slotOf('{lock:lock-set}');
      const leader = () => cluster.slotOwner(slot);
      return {
        servers: cluster.nodes,
        address: (roots, natMap): RedisAddress => ({ kind: 'cluster', roots, natMap }),
        election: electionOf(cluster.nodes, leader, {
          async follower() {
            const views = await cluster.topology();
            const master = await leader();
            const { id } = found(views.find(({ server }) => server === master));
            return found(views.find(({ masterId }) => masterId === id)).server;
          },
          untilReplaced: (old) => cluster.waitForNewOwner(slot, old.port),
          untilReady: () => cluster.waitUntilReady(),
        }),
      };
    }),
  },

  'postgres-lease': {
    ...leases(TTL_MS),
    canLoseData: true,
    canSetClock: true,
    diskMb: 160,
    stranger: POSTGRES_STARTUP,
    ...single('postgres-faults/lease-lab.ts', postgresSettings),
  },
  'postgres-lease-pgbouncer': {
    ...leases(TTL_MS),
    ...several('postgres-faults/lease-lab.ts', startPostgres, async (postgres, owner) => {
      const pooler = owner.use(await startPgbouncer(postgres));
      return {
        server: pooler,
        servers: [pooler, postgres],
        address: ([through, past]) => ({
          ...through,
          listen: { connectionString: `postgres://postgres@${past?.host}:${past?.port}/postgres` },
        }),
      };
    }),
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
    ...leases(TTL_MS),
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
    ...zookeeperSession,
    canLoseData: true,
    canSetClock: true,
    diskMb: 64,
    stranger: Buffer.alloc(0),
    ...single('zookeeper-faults/lab.ts', ({ fewConnections }) => ({
      config: fewConnections ? [`maxClientCnxns=${FEW_CONNECTIONS}`] : [],
    })),
  },
  'zookeeper-ensemble': {
    ...zookeeperSession,
    canSetClock: true,
    ...several('zookeeper-faults/lab.ts', startZookeeperEnsemble, (ensemble) => ({
      servers: ensemble.members,
      address: (at) => ({ address: at.map(({ host, port }) => `${host}:${port}`).join(',') }),
      election: electionOf(ensemble.members, () => ensemble.leader(), {
        follower: () => ensemble.follower(),
      }),
    })),
  },

  etcd: {
    ...leases(2_000),
    canLoseData: true,
    diskMb: 160,
    ...single('etcd-faults/lab.ts'),
  },
  'etcd-cluster': {
    ...leases(2_000),
    ...several('etcd-faults/lab.ts', startEtcdCluster, (cluster) => ({
      servers: cluster.members,
      address: (at) => at.map(({ host, port }) => `http://${host}:${port}`),
      election: electionOf(cluster.members, () => cluster.leader()),
    })),
  },
  nats: {
    ...leases(TTL_MS),
    diskMb: 64,
    ...single('nats-faults/lab.ts'),
  },
  'nats-cluster': {
    ...leases(TTL_MS),
    ...several('nats-faults/lab.ts', startNatsCluster, (cluster) => ({
      servers: cluster.members,
      address: (at) => at.map(({ host, port }) => `nats://${host}:${port}`),
      election: electionOf(cluster.members, () => cluster.leader('KV_locks')),
    })),
  },
  dynamodb: {
    ...leases(TTL_MS),
    ...single('dynamodb-faults/lab.ts'),
  },
  's3-seaweedfs': {
    ...leases(TTL_MS),
    ...single('seaweedfs-faults/lab.ts'),
  },
  mongodb: {
    ...leases(TTL_MS),
    ...single('mongodb-faults/lab.ts'),
  },
};

function found<T>(one: T | undefined): T {
  if (one === undefined) throw new Error('There is no such server.');
  return one;
}
