import { createLocks, isLockError, type LockBackend, LockError, type LockManager } from '@locks/core';
import type { OnceRecord } from '@locks/once';
import type { RedisOptions } from 'ioredis';
import type { RedisClient } from './redis-client.ts';
import { withPackagesOf } from './store-packages.ts';
import { etcdHosts, hostsOf, readStoreUrl, sqlitePath, type StoreName, type StoreUrl } from './store-url.ts';
import { UsageError } from './usage-error.ts';

/** Time limit for the first answer of a store, in milliseconds. */
export const REACH_MS = 5_000;
/** Minimum time limit for the first answer to the second client of a store, in milliseconds. */
const LEAST_MS = 500;

export interface Store extends AsyncDisposable {
  readonly locks: LockManager;
  /** Opens the record of the slots that `locks once` has done. It is in the store of the locks, beside them. */
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
  /** Opens the backend that must serve the store instead, if there is one. Called once the store has answered. */
  readonly instead?: () => Promise<OpenBackend | undefined>;
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
 * @throws UsageError, also where the adapter or the client is not installed, and LockError `LOCK_INVALID_ARGUMENT` for what an
 * adapter refuses
 */
export async function openStore(text: string | undefined, prefix: string | undefined): Promise<Store> {
  const url = readStoreUrl(text);
  let opened = open(await withPackagesOf(url.store, () => OPEN[url.store](url, prefix)));
  return {
    get locks() {
      return opened.locks;
    },
    openRecord: () => opened.openRecord(),
    async reach(withinMs) {
      const endsAt = performance.now() + withinMs;
      await firstAnswer(opened, withinMs);
      const instead = await opened.instead?.();
      if (instead === undefined) return;
      await close(opened);
      opened = open(instead);
      await firstAnswer(opened, Math.max(LEAST_MS, Math.round(endsAt - performance.now())));
    },
    [Symbol.asyncDispose]: () => close(opened),
  };
}

type Opened = OpenBackend & Pick<Store, 'locks'>;

function open(one: OpenBackend): Opened {
  // Each command passes its own options.
  return { ...one, locks: createLocks(one.backend) };
}

async function close({ locks, closeClient }: Opened): Promise<void> {
  await locks.close();
  await closeClient?.();
}

async function firstAnswer({ locks, connectionError }: Opened, withinMs: number): Promise<void> {
  try {
    await locks.ping({ waitMs: withinMs });
  } catch (error) {
    throw withReason(error, connectionError?.());
  }
}

/** The error of a store that did not answer, with the last one of its connection. */
function withReason(error: unknown, reason: Error | undefined): unknown {
  if (reason === undefined || !isLockError(error) || error.message.includes(reason.message)) return error;
  return new LockError(error.code, `${error.message} (${reason.message})`, { cause: error });
}

async function openRedis(url: StoreUrl, prefix: string | undefined): Promise<OpenBackend> {
  const { clusterClient, isClusterNode, readRedisUrl, redisClient } = await import('./redis-client.ts');
  const address = readRedisUrl(url);
  const client = redisClient(address);
  return {
    ...(await openRedisClient(client, prefix, (options) => redisClient(address, options))),
    async instead() {
      if (await isClusterNode(client))
        return {
          ...(await openRedisClient(clusterClient(address), prefix, (options) =>
            clusterClient(address, options),
          )),
          // The client of a cluster waits until all slots are served.
          connectionError: () => new Error('CLUSTERDOWN: not all slots of the cluster are served'),
        };
      // The client goes on in database 0 where the server refuses another one.
      if (address.database > 0)
        await client.select(address.database).catch((error: unknown) => {
          throw new UsageError(
            `--url or LOCKS_URL: database ${address.database}: ${(error as Error).message}`,
          );
        });
      return undefined;
    },
  };
}

async function openRedisClient(
  client: RedisClient,
  prefix: string | undefined,
  another: (options: RedisOptions) => RedisClient,
): Promise<OpenBackend> {
  const { redisBackend } = await import('@locks/redis-ioredis');
  let last: Error | undefined;
  client.on('error', (error: Error) => (last = error));
  return {
    backend: redisBackend(client, prefix === undefined ? {} : { prefix }),
    openRecord: async () => (await import('./records/redis-record.ts')).redisRecordAt(another, prefix),
    closeClient: () => client.disconnect(),
    connectionError: () => last,
  };
}

async function openPostgres({ text }: StoreUrl, prefix: string | undefined): Promise<OpenBackend> {
  const { postgresLeaseBackend } = await import('@locks/postgres');
  const schema = prefix === undefined ? {} : { schema: prefix };
  return {
    backend: postgresLeaseBackend({ connectionString: text, ...schema }),
    openRecord: async () => (await import('./records/postgres-record.ts')).postgresRecordAt(text, prefix),
  };
}

async function openMysql({ text }: StoreUrl, prefix: string | undefined): Promise<OpenBackend> {
  const { mysqlBackend } = await import('@locks/mysql');
  const tablePrefix = prefix === undefined ? {} : { tablePrefix: prefix };
  return {
    backend: mysqlBackend({ uri: text, ...tablePrefix }),
    openRecord: async () => (await import('./records/mysql-record.ts')).mysqlRecordAt(text, prefix),
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
    // The file has the tokens and the record, so both are deleted together.
    openRecord: async () => sqliteRecord({ path }),
  };
}
