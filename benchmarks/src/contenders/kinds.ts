import {
  type BaseLease,
  createLocks,
  type LockBackend,
  type LockManager,
  type MultiLease,
} from '@locks/core';
import { quorumBackend } from '@locks/core/quorum';
import { redisBackend as ioredisBackend } from '@locks/redis-ioredis';
import { redisBackend as nodeRedisBackend } from '@locks/redis-node';
import { Semaphore as PollingSemaphore } from 'redis-semaphore';
import { connectIoredis, connectNodeRedis } from './connect.ts';
import { type Contender, type Release, TTL_MS } from './contender.ts';

/** How many permits the semaphores have. */
export const PERMITS = 8;
/** How many locks one set has. */
export const TOGETHER = 5;

/** The rows in which these contenders take part. */
export type KindsRow = 'readers' | 'semaphore' | 'weights' | 'all' | 'quorum';

export interface KindsContender extends Contender {
  readonly rows: readonly KindsRow[];
}

interface RedisClient {
  readonly label: string;
  readonly packages: readonly string[];
  connect(url: string): Promise<RedisConnection>;
}

interface RedisConnection {
  readonly backend: LockBackend;
  ping(): Promise<unknown>;
  close(): void;
}

const ioredis: RedisClient = {
  label: 'ioredis',
  packages: ['@locks/core', '@locks/redis-ioredis', 'ioredis'],
  async connect(url) {
    const client = await connectIoredis(url);
    return { backend: ioredisBackend(client), ping: () => client.ping(), close: () => client.disconnect() };
  },
};

const nodeRedis: RedisClient = {
  label: 'node-redis',
  packages: ['@locks/core', '@locks/redis-node', 'redis'],
  async connect(url) {
    const client = await connectNodeRedis(url);
    return { backend: nodeRedisBackend(client), ping: () => client.ping(), close: () => client.destroy() };
  },
};

const waitForever = { waitMs: Number.POSITIVE_INFINITY };

type Acquire = (locks: LockManager, name: string, weight: number) => Promise<BaseLease | MultiLease>;

/** One kind of lock, or what it is compared to: its name, and how it is acquired. */
interface Kind {
  readonly name: string;
  readonly rows: readonly KindsRow[];
  /** Absent for the contender that the others of its row are compared to. */
  readonly against?: string;
  /** How many servers it needs. */
  readonly nodes?: number;
  readonly acquire: Acquire;
}

const exclusive: Acquire = (locks, name) => locks.lock(name).acquire(waitForever);
const partsOf = (name: string): string[] => Array.from({ length: TOGETHER }, (_, part) => `${name}:${part}`);

const kinds: readonly Kind[] = [
  { name: 'exclusive', rows: ['readers', 'all', 'quorum'], acquire: exclusive },
  {
    name: 'readers of one name',
    rows: ['readers'],
    against: 'exclusive',
    acquire: (locks) => locks.readWriteLock('bench:readers').read.acquire(waitForever),
  },
  {
    name: `semaphore of ${PERMITS}`,
    rows: ['semaphore', 'weights'],
    acquire: (locks, name, weight) => locks.semaphore(name, PERMITS).acquire({ ...waitForever, weight }),
  },
  {
    name: `all of ${TOGETHER}`,
    rows: ['all'],
    against: `${TOGETHER} separate`,
    acquire: (locks, name) => locks.all(partsOf(name).map((part) => locks.lock(part))).acquire(waitForever),
  },
  {
    name: 'quorum of 3',
    rows: ['quorum'],
    against: 'exclusive',
    nodes: 3,
    acquire: exclusive,
  },
];

/** The locks of a set without `all`: one after the other, in an order that all processes share. */
function separate(client: RedisClient): KindsContender {
  return {
    store: 'kinds',
    name: `${TOGETHER} separate, ${client.label}`,
    kind: 'floor',
    floor: `${TOGETHER} separate, ${client.label}`,
    packages: client.packages,
    rows: ['all'],
    async open(url) {
      const { backend, ping, close } = await client.connect(firstOf(url));
      const locks = createLocks(backend, { ttlMs: TTL_MS });
      return {
        async acquire(name): Promise<Release> {
          const leases: BaseLease[] = [];
          for (const part of partsOf(name)) leases.push(await locks.lock(part).acquire(waitForever));
          return async () => {
            for (const lease of leases.toReversed()) await lease.release();
          };
        },
        ping,
        close: async () => {
          await locks.close();
          close();
        },
      };
    },
  };
}

function ours(client: RedisClient, { name, rows, against, nodes = 1, acquire }: Kind): KindsContender {
  const labelled = `${name}, ${client.label}`;
  return {
    store: 'kinds',
    name: labelled,
    kind: 'ours',
    floor: against === undefined ? labelled : `${against}, ${client.label}`,
    packages: client.packages,
    rows,
    async open(urls) {
      const all = urls.split(' ').slice(0, nodes);
      const connections = await Promise.all(all.map((url) => client.connect(url)));
      const [first] = connections as [RedisConnection];
      const backend = nodes === 1 ? first.backend : quorumBackend(connections.map((each) => each.backend));
      const locks = createLocks(backend, { ttlMs: TTL_MS });
      return {
        async acquire(resource, weight = 1) {
          const lease = await acquire(locks, resource, weight);
          return () => lease.release();
        },
        ping: () => first.ping(),
        close: async () => {
          await locks.close();
          for (const connection of connections) connection.close();
        },
      };
    },
  };
}

/** Polls every 10 ms, and has no weights. */
const pollingSemaphore: KindsContender = {
  store: 'kinds',
  name: 'redis-semaphore',
  kind: 'peer',
  floor: 'redis-semaphore',
  packages: ['redis-semaphore', 'ioredis'],
  rows: ['semaphore'],
  async open(url) {
    const client = await connectIoredis(firstOf(url));
    return {
      async acquire(name) {
        const semaphore = new PollingSemaphore(client, name, PERMITS, {
          lockTimeout: TTL_MS,
          acquireTimeout: Number.POSITIVE_INFINITY,
        });
        await semaphore.acquire();
        return () => semaphore.release();
      },
      ping: () => client.ping(),
      close: async () => client.disconnect(),
    };
  },
};

export const kindsContenders: readonly KindsContender[] = [
  ...[ioredis, nodeRedis].flatMap((client) => [...kinds.map((kind) => ours(client, kind)), separate(client)]),
  pollingSemaphore,
];

function firstOf(urls: string): string {
  return urls.split(' ')[0] as string;
}
