// Runs under Node, Bun and Deno, and with old clients: `main.js <backend>` says what its locks did, and ends by itself.
import { createLocks, isLockError } from '@locks/core';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';

/** Of each backend: two of them on one store, and how to let go of what they were given. */
const stores = {
  async memory() {
    const { memoryBackend, MemoryStore } = await import('@locks/memory');
    const store = new MemoryStore();
    return { backends: [memoryBackend(store), memoryBackend(store)], end() {} };
  },

  async sqlite() {
    const { sqliteBackend } = await import('@locks/sqlite');
    const path = join(tmpdir(), `locks-${process.pid}.sqlite`);
    return {
      backends: [sqliteBackend({ path }), sqliteBackend({ path })],
      end: () => Promise.all(['', '-wal', '-shm'].map((end) => rm(`${path}${end}`, { force: true }))),
    };
  },

  ioredis: () => throughIoredis('ioredis'),
  'ioredis-5': () => throughIoredis('ioredis-5'),

  async 'node-redis'() {
    const { redisBackend } = await import('@locks/redis-node');
    const { createClient } = await import('redis');
    const clients = [1, 2].map(() => createClient({ url: process.env.REDIS_URL }));
    await Promise.all(clients.map((client) => client.connect()));
    return {
      backends: clients.map((client) => redisBackend(client)),
      end: () => Promise.all(clients.map((client) => client.close())),
    };
  },

  async postgres() {
    const { migrateLeaseSchema, postgresLeaseBackend } = await import('@locks/postgres');
    const { default: pg } = await import('pg');
    const pools = [1, 2].map(() => new pg.Pool({ connectionString: process.env.POSTGRES_URL }));
    await migrateLeaseSchema({ pool: pools[0] });
    return {
      backends: pools.map((pool) => postgresLeaseBackend({ pool })),
      end: () => Promise.all(pools.map((pool) => pool.end())),
    };
  },

  async 'postgres-advisory'() {
    const { postgresAdvisoryBackend } = await import('@locks/postgres');
    const { default: pg } = await import('pg');
    const pools = [1, 2].map(() => new pg.Pool({ connectionString: process.env.POSTGRES_URL }));
    return {
      backends: pools.map((pool) => postgresAdvisoryBackend({ pool })),
      end: () => Promise.all(pools.map((pool) => pool.end())),
    };
  },

  async mysql() {
    const { mysqlBackend } = await import('@locks/mysql');
    const { createPool } = await import('mysql2/promise');
    const pools = [1, 2].map(() => createPool(process.env.MYSQL_URL));
    return {
      backends: pools.map((pool) => mysqlBackend({ pool })),
      end: () => Promise.all(pools.map((pool) => pool.end())),
    };
  },

  async etcd() {
    const { etcdBackend } = await import('@locks/etcd');
    const hosts = process.env.ETCD_URL;
    return { backends: [etcdBackend({ hosts }), etcdBackend({ hosts })], end() {} };
  },

  async zookeeper() {
    const { zookeeperBackend } = await import('@locks/zookeeper');
    const servers = process.env.ZOOKEEPER_URL;
    return { backends: [zookeeperBackend({ servers }), zookeeperBackend({ servers })], end() {} };
  },
};

/** The package asks for `ioredis`, which may be of another version than the client that it is given. */
async function throughIoredis(client) {
  const { redisBackend } = await import('@locks/redis-ioredis');
  const { Redis } = await import(client);
  const clients = [new Redis(process.env.REDIS_URL), new Redis(process.env.REDIS_URL)];
  return {
    backends: clients.map((one) => redisBackend(one)),
    end: () => Promise.all(clients.map((one) => one.quit())),
  };
}

const backend = process.argv[2];
const { backends, end } = await stores[backend]();
const [first, second] = backends.map((one) => createLocks(one, { ttlMs: 2_500 }));
const name = `runtimes-${process.pid}`;

// Nobody else holds for longer than a ttl: renewals keep the lease.
const lease = await first.lock(name).acquire();
const refused = await second.lock(name).tryAcquire();
await sleep(2_800);
const isKept = !lease.signal.aborted;
const timeout = await second
  .lock(name)
  .acquire({ waitMs: 1_500 })
  .catch((error) => error);
const wait = second.lock(name).acquire({ waitMs: 10_000 });
await sleep(50);
const releasedAt = performance.now();
await lease.release();
const next = await wait;
const handOffMs = performance.now() - releasedAt;
await next.release();

// Both take turns at a counter that a lost update would show.
let counter = 0;
const increment = async () => {
  const before = counter;
  await sleep(1);
  counter = before + 1;
};
await Promise.all(
  Array.from({ length: 20 }, (_, index) => (index % 2 ? first : second).lock(name).run(increment)),
);
// Asynchronous context: a run inside a run re-enters, also across awaits.
const reentrant = first.lock(name, { reentrant: true });
const holdCount = await reentrant.run(async () => {
  await sleep(5);
  return reentrant.run((inner) => inner.holdCount);
});

await Promise.all([first.close(), second.close()]);
await end();
console.log(
  JSON.stringify({
    refused: refused === undefined,
    isKept,
    timeout: isLockError(timeout) ? timeout.code : String(timeout),
    isHandedOn: handOffMs < 1_000,
    counter,
    holdCount,
  }),
);
