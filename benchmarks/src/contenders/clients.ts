import { once } from 'node:events';
import path from 'node:path';
import type { LockBackend } from '@locks/core/backend';
import type { Redis } from 'ioredis';
import type { Redis as Redis5 } from 'ioredis5';
import type { Pool as MysqlPool } from 'mysql2/promise';
import type { Client as ZookeeperClient } from 'node-zookeeper-client';
import type { Client } from './contender.ts';

export const ioredis: Client<Redis> = {
  packages: ['ioredis'],
  async connect(url) {
    const { Redis: IoRedis } = await import('ioredis');
    const client = new IoRedis(url, { lazyConnect: true });
    await client.connect();
    return { client, ping: () => client.ping(), close: () => client.disconnect() };
  },
};

/** The previous major version, which some peers require. */
export const ioredis5: Client<Redis5> = {
  packages: ['ioredis5'],
  async connect(url) {
    const { Redis: IoRedis } = await import('ioredis5');
    const client = new IoRedis(url, { lazyConnect: true });
    await client.connect();
    return { client, ping: () => client.ping(), close: () => client.disconnect() };
  },
};

async function connectNodeRedis(url: string) {
  const { createClient } = await import('redis');
  const client = createClient({ url });
  client.on('error', (error) => {
    throw error;
  });
  return await client.connect();
}

export const nodeRedis: Client<Awaited<ReturnType<typeof connectNodeRedis>>> = {
  packages: ['redis'],
  async connect(url) {
    const client = await connectNodeRedis(url);
    return { client, ping: () => client.ping(), close: () => client.destroy() };
  },
};

/** A pool of the application, with pg's default of at most 10 connections. */
export const pgPool: Client<import('pg').Pool> = {
  packages: ['pg'],
  async connect(connectionString) {
    const { default: pg } = await import('pg');
    const client = new pg.Pool({ connectionString });
    const ping = () => client.query({ name: 'ping', text: 'SELECT 1' });
    return { client, ping, close: () => client.end() };
  },
};

/** An instance of the application, with the default of at most 10 connections. */
export const postgresJs = (max = 10): Client<import('postgres').Sql> => ({
  packages: ['postgres'],
  async connect(url) {
    const { default: postgres } = await import('postgres');
    const client = postgres(url, { max, onnotice: () => undefined });
    return { client, ping: () => client`SELECT 1`, close: () => client.end() };
  },
});

/** A pool of the application, with mysql2's default of at most 10 connections. */
export const mysqlPool = (flags: string[] = []): Client<MysqlPool> => ({
  packages: ['mysql2'],
  async connect(uri) {
    const { default: mysql } = await import('mysql2/promise');
    const client = mysql.createPool({ uri, flags });
    return { client, ping: () => client.query('SELECT 1'), close: () => client.end() };
  },
});

export const etcd3: Client<import('etcd3').Etcd3> = {
  packages: ['etcd3'],
  async connect(hosts) {
    const { Etcd3 } = await import('etcd3');
    // Clients of one process share a connection otherwise, and a dead one is kept: docs/backends/etcd.md.
    const client = new Etcd3({ hosts, grpcOptions: { 'grpc.use_local_subchannel_pool': 1 } });
    return { client, ping: async () => client.get('ping'), close: () => client.close() };
  },
};

type BothZookeeper = ZookeeperClient &
  Exclude<Parameters<typeof import('@locks/zookeeper').zookeeperBackend>[0], string>;

export const zookeeper: Client<BothZookeeper> = {
  packages: ['node-zookeeper-client'],
  async connect(url) {
    const { default: library } = await import('node-zookeeper-client');
    const client = library.createClient(url, { sessionTimeout: 10_000 });
    const connected = once(client as unknown as NodeJS.EventEmitter, 'connected');
    client.connect();
    await connected;
    const ping = () => done<unknown>((end) => client.exists('/', end));
    return { client: client as BothZookeeper, ping, close: () => client.close() };
  },
};

export function done<T = void>(
  send: (end: (error: Error | null | undefined, value?: T) => void) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    send((error, value) => {
      if (error) reject(error);
      else resolve(value as T);
    });
  });
}

/** The file of SQLite in the folder of a run. */
export const SQLITE_FILE = 'locks.db';

/** No client: the url is a folder. */
export const noClient: Client<string> = {
  packages: [],
  connect: async (client) => ({ client, ping: async () => {}, close: () => {} }),
};

/** One of our backends, on a client of its own. */
export function backend<C>(
  name: string,
  client: Client<C>,
  make: (client: C) => Promise<LockBackend>,
): Client<LockBackend> {
  return {
    packages: [name, ...client.packages],
    async connect(url) {
      const connection = await client.connect(url);
      return { ...connection, client: await make(connection.client) };
    },
  };
}

/** Our backends, by the name under which a suite tells them apart. */
export const backends = {
  memory: backend('@locks/memory', noClient, async () => (await import('@locks/memory')).memoryBackend()),
  sqlite: backend('@locks/sqlite', noClient, async (folder) =>
    (await import('@locks/sqlite')).sqliteBackend(path.join(folder, SQLITE_FILE)),
  ),
  file: backend('@locks/file', noClient, async (folder) =>
    (await import('@locks/file')).fileBackend(path.join(folder, 'locks')),
  ),
  'redis-ioredis': backend('@locks/redis-ioredis', ioredis, async (client) =>
    (await import('@locks/redis-ioredis')).redisBackend(client),
  ),
  'redis-node': backend('@locks/redis-node', nodeRedis, async (client) =>
    (await import('@locks/redis-node')).redisBackend(client),
  ),
  'postgres lease': backend('@locks/postgres', pgPool, async (pool) =>
    (await import('@locks/postgres')).postgresLeaseBackend(pool),
  ),
  // It opens connections of its own, whatever the pool: sessions hold the locks.
  'postgres.js lease': backend('@locks/postgres', postgresJs(), async (sql) =>
    (await import('@locks/postgres/postgres-js')).postgresLeaseBackend(sql),
  ),

  'postgres.js advisory': backend('@locks/postgres', postgresJs(), async (sql) =>
    (await import('@locks/postgres/postgres-js')).postgresAdvisoryBackend(sql),
  ),

  'postgres advisory': backend('@locks/postgres', pgPool, async (pool) =>
    (await import('@locks/postgres')).postgresAdvisoryBackend(pool),
  ),
  mysql: backend('@locks/mysql', mysqlPool(), async (pool) =>
    (await import('@locks/mysql')).mysqlBackend(pool),
  ),
  etcd: backend('@locks/etcd', etcd3, async (client) => (await import('@locks/etcd')).etcdBackend(client)),
  zookeeper: backend('@locks/zookeeper', zookeeper, async (client) =>
    (await import('@locks/zookeeper')).zookeeperBackend(client),
  ),
} as const satisfies Record<string, Client<LockBackend>>;
