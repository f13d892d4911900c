import { createLocks, type LockBackend, type LockManager } from '@locks/core';
import type { OnceRecord } from '@locks/once';
import { etcdHosts, hostsOf, sqlitePath, readStoreUrl, type StoreName, type StoreUrl } from './store-url.ts';
import { UsageError } from './usage-error.ts';

export interface Store extends AsyncDisposable {
  readonly locks: LockManager;
  /** Where it is kept which slots `locks once` has done: in the store of the locks, beside them. */
  readonly openRecord: () => Promise<OnceRecord>;
  /** The last error of the connection, where the client reports it apart from the calls. */
  connectionError(): Error | undefined;
}

interface OpenBackend {
  readonly backend: LockBackend;
  readonly openRecord: () => Promise<OnceRecord>;
  /** Closes the client that was opened for the backend. */
  readonly closeClient?: () => unknown;
  readonly connectionError?: () => Error | undefined;
}

type Open = (url: StoreUrl, prefix: string | undefined) => Promise<OpenBackend>;

const OPEN: Readonly<Record<StoreName, Open>> = {
  redis: openRedis,
  postgres: openPostgres,
  mysql: openMysql,
  etcd: openEtcd,
  zookeeper: openZookeeper,
  sqlite: openSqlite,
};

/**
 * Opens the store of a URL. Only the adapter and the client of that store are loaded. No request is sent.
 *
 * @throws UsageError, and LockError `LOCK_INVALID_ARGUMENT` for what an adapter refuses
 */
export async function openStore(text: string | undefined, prefix: string | undefined): Promise<Store> {
  const url = readStoreUrl(text);
  const { backend, openRecord, closeClient, connectionError } = await OPEN[url.store](url, prefix);
  // Each command passes its own options.
  const locks: LockManager = createLocks(backend);
  return {
    locks,
    openRecord,
    connectionError: () => connectionError?.(),
    async [Symbol.asyncDispose]() {
      await locks.close();
      await closeClient?.();
    },
  };
}

async function openRedis({ text }: StoreUrl, prefix: string | undefined): Promise<OpenBackend> {
  const { redisBackend } = await import('@locks/redis-ioredis');
  const { Redis } = await import('ioredis');
  const client = new Redis(text);
  let last: Error | undefined;
  client.on('error', (error) => (last = error));
  return {
    backend: redisBackend(client, prefix === undefined ? {} : { prefix }),
    openRecord: async () => (await import('./records/redis-record.ts')).redisRecord(text, prefix),
    closeClient: () => client.disconnect(),
    connectionError: () => last,
  };
}

async function openPostgres({ text }: StoreUrl, prefix: string | undefined): Promise<OpenBackend> {
  const { postgresLeaseBackend } = await import('@locks/postgres');
  const schema = prefix === undefined ? {} : { schema: prefix };
  return {
    backend: postgresLeaseBackend({ connectionString: text, ...schema }),
    openRecord: async () => (await import('./records/postgres-record.ts')).postgresRecord(text, prefix),
  };
}

async function openMysql({ text }: StoreUrl, prefix: string | undefined): Promise<OpenBackend> {
  const { mysqlBackend } = await import('@locks/mysql');
  const tablePrefix = prefix === undefined ? {} : { tablePrefix: prefix };
  return {
    backend: mysqlBackend({ uri: text, ...tablePrefix }),
    openRecord: async () => (await import('./records/mysql-record.ts')).mysqlRecord(text, prefix),
  };
}

async function openEtcd(url: StoreUrl, prefix: string | undefined): Promise<OpenBackend> {
  const { etcdBackend } = await import('@locks/etcd');
  const hosts = etcdHosts(url);
  return {
    backend: etcdBackend({ hosts }, prefix === undefined ? {} : { prefix }),
    openRecord: async () => (await import('./records/etcd-record.ts')).etcdRecord(hosts, prefix),
  };
}

async function openZookeeper(url: StoreUrl, prefix: string | undefined): Promise<OpenBackend> {
  const { zookeeperBackend } = await import('@locks/zookeeper');
  const path = prefix === undefined ? {} : { path: prefix };
  const servers = hostsOf(url);
  return {
    backend: zookeeperBackend({ servers, ...path }),
    openRecord: async () => (await import('./records/zookeeper-record.ts')).zookeeperRecord(servers, prefix),
  };
}

async function openSqlite(url: StoreUrl, prefix: string | undefined): Promise<OpenBackend> {
  if (prefix !== undefined) throw new UsageError('--prefix: a SQLite file has none: take another file');
  const { sqliteBackend, sqliteRecord } = await import('@locks/sqlite');
  const path = sqlitePath(url);
  return {
    backend: sqliteBackend({ path }),
    // Whoever deletes the file deletes the tokens and the record together.
    openRecord: async () => sqliteRecord({ path }),
  };
}
