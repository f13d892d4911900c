import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  startCluster,
  startEtcdCluster,
  startNatsCluster,
  startPgbouncer,
  startPostgres,
  startSentinel,
  startZookeeperEnsemble,
} from '@locks/test-servers';
import type { RedisAddress } from '../harnesses/redis/address.ts';
import {
  type DeploymentWish,
  electionOf,
  FEW_CONNECTIONS,
  found,
  type LabBackend,
  several,
  single,
} from './deployments.ts';

const TTL_MS = 1_000;
const ALL_MODES = ['exclusive', 'shared', 'permit'] as const;
const TWO_MODES = ['exclusive', 'shared'] as const;

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

const redisLab = { modes: ALL_MODES, hasTokens: true, hasThreads: true, ttlMs: TTL_MS } as const;
const redisOptions = { ttlMs: TTL_MS, backend: { maxPollMs: 200 } };

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

/** Leases on one server, by the driver that the options name. */
const postgresLease = {
  ...leases(TTL_MS),
  hasThreads: true,
  canLoseData: true,
  canSetClock: true,
  diskMb: 160,
  stranger: POSTGRES_STARTUP,
  ...single('postgres-faults/lease-lab.ts', postgresSettings),
} as const;

export const labBackends: Readonly<Record<string, LabBackend>> = {
  sqlite: {
    ...leases(TTL_MS),
    hasThreads: true,
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
  'redis-glide': {
    ...redisLab,
    ...singleRedis,
    ...single('redis-faults/lab.ts', redisSettings),
    options: { ...redisOptions, library: 'redis-glide' },
  },
  // Each worker has a bridge of its own between HTTP and the server.
  upstash: {
    ...redisLab,
    ...singleRedis,
    ...single('redis-faults/lab.ts', redisSettings),
    options: { ttlMs: TTL_MS, library: 'upstash' },
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
      const slot = cluster.slotOf('{lock::lock-set}');
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

  'postgres-lease': postgresLease,
  'postgres-lease-postgres-js': { ...postgresLease, options: { ttlMs: TTL_MS, driver: 'postgres-js' } },
  'postgres-lease-pgbouncer': {
    ...leases(TTL_MS),
    hasThreads: true,
    ...several('postgres-faults/lease-lab.ts', startPostgres, async (postgres, owner) => {
      const pooler = owner.use(await startPgbouncer(postgres));
      return {
        server: pooler,
        servers: [pooler, postgres],
        address: ([through, past]) => ({
          ...through,
          listen: { url: `postgres://postgres@${past?.host}:${past?.port}/postgres` },
        }),
      };
    }),
  },

  'postgres-advisory': {
    endsWithConnection: true,
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
