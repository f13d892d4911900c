import { createLocks, type LockManager } from '@locks/core';
import type { MemoryStore } from '@locks/memory';
import type { BackendName, StoreAddress } from './backends.ts';

/** Locks, and the end of the connection under them. */
export interface Connection extends AsyncDisposable {
  readonly locks: LockManager;
}

let memoryStore: MemoryStore | undefined;

/** What an application does once at its start. Each backend imports its own packages only, so that a worker starts quickly. */
const connectors: Record<BackendName, (at: string) => Promise<Connection>> = {
  async memory() {
    const { MemoryStore, memoryBackend } = await import('@locks/memory');
    // The workers of this process share one store, as processes share a server.
    memoryStore ??= new MemoryStore();
    return connection(createLocks(memoryBackend(memoryStore)));
  },

  async sqlite(path) {
    const { sqliteBackend } = await import('@locks/sqlite');
    return connection(createLocks(sqliteBackend(path)));
  },

  async file(folder) {
    const { fileBackend } = await import('@locks/file');
    return connection(createLocks(fileBackend(folder)));
  },

  async 'redis-ioredis'(url) {
    const [{ redisBackend }, { Redis }] = await Promise.all([
      import('@locks/redis-ioredis'),
      import('ioredis'),
    ]);
    const client = new Redis(url);
    return connection(createLocks(redisBackend(client)), () => client.quit());
  },

  async 'redis-node'(url) {
    const [{ redisBackend }, { createClient }] = await Promise.all([
      import('@locks/redis-node'),
      import('redis'),
    ]);
    const client = createClient({ url });
    client.on('error', (error: Error) => console.error(error.message));
    await client.connect();
    return connection(createLocks(redisBackend(client)), () => client.close());
  },

  async 'postgres-lease'(connectionString) {
    const [{ postgresLeaseBackend }, { default: pg }] = await Promise.all([
      import('@locks/postgres'),
      import('pg'),
    ]);
    const pool = new pg.Pool({ connectionString });
    return connection(createLocks(postgresLeaseBackend(pool)), () => pool.end());
  },

  async 'postgres-advisory'(connectionString) {
    const { postgresAdvisoryBackend } = await import('@locks/postgres');
    return connection(createLocks(postgresAdvisoryBackend(connectionString)));
  },

  async mysql(uri) {
    const [{ mysqlBackend }, { createPool }] = await Promise.all([
      import('@locks/mysql'),
      import('mysql2/promise'),
    ]);
    const pool = createPool(uri);
    return connection(createLocks(mysqlBackend(pool)), () => pool.end());
  },

  async zookeeper(servers) {
    const { zookeeperBackend } = await import('@locks/zookeeper');
    return connection(createLocks(zookeeperBackend(servers)));
  },

  async etcd(hosts) {
    const [{ clientOptions, etcdBackend }, { Etcd3 }] = await Promise.all([
      import('@locks/etcd'),
      import('etcd3'),
    ]);
    const client = new Etcd3(clientOptions({ hosts }));
    return connection(createLocks(etcdBackend(client)), async () => client.close());
  },
};

export function connect({ backend, at }: StoreAddress): Promise<Connection> {
  return connectors[backend](at);
}

function connection(locks: LockManager, disconnect?: () => Promise<unknown>): Connection {
  return {
    locks,
    async [Symbol.asyncDispose]() {
      await locks.close();
      await disconnect?.();
    },
  };
}
