// The backends of the applications, each with its store from the environment: REDIS_URL and the like, LOCKS_SQLITE_FILE, LOCKS_FOLDER.
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';

let memoryStore;
let database;

/**
 * Each gives a backend, and how to let go of what it was given. Those of the rehearsed upgrade take a place of their own in the store:
 * a word, for a prefix, a path, a schema.
 */
const stores = {
  async memory() {
    const { memoryBackend, MemoryStore } = await import('@locks/memory');
    memoryStore ??= new MemoryStore();
    return { backend: memoryBackend(memoryStore), end() {} };
  },

  async sqlite(place = '') {
    const { sqliteBackend } = await import('@locks/sqlite');
    const own = join(tmpdir(), `locks-${process.pid}.sqlite`);
    const path = `${process.env.LOCKS_SQLITE_FILE ?? own}${place}`;
    const files = ['', '-wal', '-shm'].map((end) => `${own}${end}`);
    return {
      backend: sqliteBackend(path),
      end: () => Promise.all(files.map((file) => rm(file, { force: true }))),
    };
  },

  async file() {
    const { fileBackend } = await import('@locks/file');
    const folder = process.env.LOCKS_FOLDER ?? join(tmpdir(), `locks-${process.pid}`);
    return { backend: fileBackend(folder), end: () => rm(folder, { recursive: true, force: true }) };
  },

  ioredis: (place) => throughIoredis('ioredis', place),
  'ioredis-5': () => throughIoredis('ioredis-5'),
  iovalkey: () => throughIoredis('iovalkey'),

  async 'node-redis'(place) {
    const { redisBackend } = await import('@locks/redis-node');
    const { createClient } = await import('redis');
    const client = createClient({ url: process.env.REDIS_URL });
    await client.connect();
    return { backend: redisBackend(client, place && { prefix: `${place}:` }), end: () => client.close() };
  },

  async 'bun-redis'() {
    const { redisBackend } = await import('@locks/redis-protocol/bun');
    const client = new globalThis.Bun.RedisClient(process.env.REDIS_URL);
    return { backend: redisBackend(client), end: () => client.close() };
  },

  async postgres(schema) {
    const { postgresLeaseBackend } = await import('@locks/postgres');
    const { default: pg } = await import('pg');
    const pool = new pg.Pool({ connectionString: process.env.POSTGRES_URL });
    // In a place of its own the first lock migrates.
    const backend = postgresLeaseBackend(pool, { schema });
    if (schema === undefined) await (await import('@locks/core')).createLocks(backend).prepare();
    return { backend, end: () => pool.end() };
  },

  async 'postgres-js'() {
    const { postgresLeaseBackend } = await import('@locks/postgres/postgres-js');
    const { default: postgres } = await import('postgres');
    const sql = postgres(process.env.POSTGRES_URL);
    return { backend: postgresLeaseBackend(sql), end: () => sql.end() };
  },

  async 'bun-sql'() {
    const { postgresLeaseBackend } = await import('@locks/postgres/bun-sql');
    const sql = new globalThis.Bun.SQL(process.env.POSTGRES_URL);
    return { backend: postgresLeaseBackend(sql), end: () => sql.close() };
  },

  async pglite() {
    const { postgresLeaseBackend } = await import('@locks/postgres/pglite');
    const { PGlite } = await import('@electric-sql/pglite');
    const db = await (database ??= PGlite.create());
    return { backend: postgresLeaseBackend(db), end: () => (db.closed ? undefined : db.close()) };
  },

  async 'postgres-advisory'() {
    const { postgresAdvisoryBackend } = await import('@locks/postgres');
    const { default: pg } = await import('pg');
    const pool = new pg.Pool({ connectionString: process.env.POSTGRES_URL });
    return { backend: postgresAdvisoryBackend(pool), end: () => pool.end() };
  },

  async mysql(place) {
    const { mysqlBackend } = await import('@locks/mysql');
    const { createPool } = await import('mysql2/promise');
    const pool = createPool(process.env.MYSQL_URL);
    return { backend: mysqlBackend(pool, { tablePrefix: place && `${place}_` }), end: () => pool.end() };
  },

  async etcd(place) {
    const { etcdBackend } = await import('@locks/etcd');
    return {
      backend: etcdBackend({ hosts: process.env.ETCD_URL }, place && { prefix: `${place}/` }),
      end() {},
    };
  },

  async zookeeper(place) {
    const { zookeeperBackend } = await import('@locks/zookeeper');
    const servers = process.env.ZOOKEEPER_URL;
    return { backend: zookeeperBackend(servers, { path: place && `/${place}` }), end() {} };
  },
};

/** A backend of this name on the store that all processes share. */
export function openStore(name, place) {
  return stores[name](place);
}

/** The package asks for `ioredis`, which may be of another version than the client that it is given. */
async function throughIoredis(clientPackage, place) {
  const { redisBackend } = await import('@locks/redis-ioredis');
  const { Redis } = await import(clientPackage);
  const client = new Redis(process.env.REDIS_URL);
  return { backend: redisBackend(client, place && { prefix: `${place}:` }), end: () => client.quit() };
}
