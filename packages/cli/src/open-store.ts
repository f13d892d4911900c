import { createLocks, isLockError, type LockBackend, LockError, type LockManager } from '@locks/core';
import type { OnceRecord } from '@locks/once';
import {
  etcdHosts,
  hostsOf,
  readStoreUrl,
  redisDatabase,
  sqlitePath,
  type StoreName,
  type StoreUrl,
} from './store-url.ts';
import { UsageError } from './usage-error.ts';

/** How long the store has for its first answer. */
export const REACH_MS = 5_000;
const DISCONNECT_MS = 100;

export interface Store extends AsyncDisposable {
  readonly locks: LockManager;
  /** Where it is kept which slots `locks once` has done: in the store of the locks, beside them. */
  readonly openRecord: () => Promise<OnceRecord>;
  /**
   * Waits for the first answer of the store.
   *
   * @throws LockError `LOCK_BACKEND`; UsageError for what the store refuses
   */
  reach(withinMs: number): Promise<void>;
}

interface OpenBackend {
  readonly backend: LockBackend;
  readonly openRecord: () => Promise<OnceRecord>;
  /** Closes the client that was opened for the backend. */
  readonly closeClient?: () => unknown;
  /** The last error of the connection, where the client reports it apart from the calls. */
  readonly connectionError?: () => Error | undefined;
  /** Asks for what no lock needs, and the URL says. */
  readonly afterReach?: () => Promise<void>;
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
  const { backend, openRecord, closeClient, connectionError, afterReach } = await OPEN[url.store](url, prefix);
  // Each command passes its own options.
  const locks: LockManager = createLocks(backend);
  return {
    locks,
    openRecord,
    async reach(withinMs) {
      try {
        await locks.ping({ waitMs: withinMs });
      } catch (error) {
        throw withReason(error, connectionError?.());
      }
      await afterReach?.();
    },
    async [Symbol.asyncDispose]() {
      await locks.close();
      await closeClient?.();
    },
  };
}

/** The error of a store that did not answer, with the last one of its connection. */
function withReason(error: unknown, reason: Error | undefined): unknown {
  if (reason === undefined || !isLockError(error) || error.message.includes(reason.message)) return error;
  return new LockError(error.code, `${error.message} (${reason.message})`, { cause: error });
}

async function openRedis(url: StoreUrl, prefix: string | undefined): Promise<OpenBackend> {
  const database = redisDatabase(url);
  const { text } = url;
  const { redisBackend } = await import('@locks/redis-ioredis');
  const { Redis } = await import('ioredis');
  // Lazy: where the prefix is refused, no connection keeps the process alive. A connection that is not there is not waited for.
  const client = new Redis(text, { lazyConnect: true, disconnectTimeout: DISCONNECT_MS });
  let last: Error | undefined;
  client.on('error', (error) => (last = error));
  return {
    backend: redisBackend(client, prefix === undefined ? {} : { prefix }),
    openRecord: async () => (await import('./records/redis-record.ts')).redisRecord(text, prefix),
    closeClient: () => client.disconnect(),
    connectionError: () => last,
    async afterReach() {
      // The client goes on in database 0 where the server refuses another one.
      if (database === 0) return;
      await client.select(database).catch((error: unknown) => {
        throw new UsageError(`--url or LOCKS_URL: database ${database}: ${(error as Error).message}`);
      });
    },
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
