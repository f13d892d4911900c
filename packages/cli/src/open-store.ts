import { createLocks, isLockError, LockError, type LockManager } from '@locks/core';
import type { Diagnosis } from '@locks/core/doctor';
import type { SlotStore } from '@locks/once';
import type { RedisOptions } from 'ioredis';
import type { RedisClient } from './redis-client.ts';
import { withPackagesOf } from './store-packages.ts';
import {
  etcdHosts,
  hostsOf,
  lockFolder,
  readStoreUrl,
  sqlitePath,
  type StoreName,
  type StoreUrl,
} from './store-url.ts';
import type { OpenBackend, OpenStore } from './stores/open-backend.ts';
import { UsageError } from './usage-error.ts';

/** Time limit for the first answer of a store, in milliseconds. */
export const REACH_MS = 5_000;
/** Minimum time limit for the first answer to the second client of a store, in milliseconds. */
const LEAST_MS = 500;

/** A store as the command line names it. */
export interface NamedStore {
  readonly url: string | undefined;
  readonly prefix: string | undefined;
}

export interface Store extends AsyncDisposable {
  readonly locks: LockManager;
  /** Opens the slot store of the slots that `locks once` has done. It is in the store of the locks, beside them. */
  readonly openSlots: () => Promise<SlotStore>;
  /** The examination of the adapter: `locks doctor` adds what tried locks show. */
  readonly examine: () => Promise<Diagnosis>;
  /**
   * Waits for the first answer of the store.
   *
   * @throws LockError `LOCK_BACKEND`; UsageError for what the store refuses
   */
  reach(withinMs: number): Promise<void>;
}

const OPEN: Readonly<Record<StoreName, OpenStore>> = {
  redis: openRedis,
  postgres: openPostgres,
  mysql: openMysql,
  etcd: openEtcd,
  zookeeper: openZookeeper,
  sqlite: openSqlite,
  file: openFile,
  dynamodb: async (url, prefix) => (await import('./stores/dynamodb.ts')).openDynamodb(url, prefix),
  s3: async (url, prefix) => (await import('./stores/s3.ts')).openS3(url, prefix),
  nats: async (url, prefix) => (await import('./stores/nats.ts')).openNats(url, prefix),
  mongodb: async (url, prefix) => (await import('./stores/mongodb.ts')).openMongodb(url, prefix),
  kubernetes: async (url, prefix) => (await import('./stores/kubernetes.ts')).openKubernetes(url, prefix),
};

/**
 * Opens the store of a URL. Only the adapter and the client of that store are loaded. No request is sent.
 *
 * @throws UsageError, also where the adapter or the client is not installed, and LockError `LOCK_INVALID_ARGUMENT` for what an
 * adapter refuses
 */
export async function openStore(text: string | undefined, prefix: string | undefined): Promise<Store> {
  let opened = open(await openUrl(text, prefix));
  return {
    get locks() {
      return opened.locks;
    },
    openSlots: () => opened.openSlots(),
    examine: () => opened.examine(),
    async reach(withinMs) {
      const endsAt = performance.now() + withinMs;
      await firstAnswer(opened, withinMs);
      const instead = await opened.instead?.();
      if (instead === undefined) return;
      const next = open(instead);
      try {
        await firstAnswer(next, Math.max(LEAST_MS, Math.round(endsAt - performance.now())));
      } catch (error) {
        // `doctor` asks the store that has answered why.
        await close(next);
        throw error;
      }
      await close(opened);
      opened = next;
    },
    [Symbol.asyncDispose]: () => close(opened),
  };
}

function openUrl(text: string | undefined, prefix: string | undefined): Promise<OpenBackend> {
  const url = readStoreUrl(text);
  return withPackagesOf(url.store, () => OPEN[url.store](url, prefix));
}

/**
 * Opens the backend that serves the store of a URL, without a manager. A store that may be a cluster is asked.
 *
 * @throws UsageError; LockError
 */
export async function openBackend(
  text: string | undefined,
  prefix: string | undefined,
): Promise<OpenBackend> {
  const opened = await openUrl(text, prefix);
  const instead = await opened.instead?.();
  if (instead === undefined) return opened;
  await opened.closeClient?.();
  return instead;
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
    await locks.ping({ answerMs: withinMs });
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
    openSlots: async () => (await import('./slots/redis-slots.ts')).redisSlotsAt(another, prefix),
    closeClient: () => client.disconnect(),
    connectionError: () => last,
    examine: async () => (await import('@locks/redis-ioredis/doctor')).examineRedis(client),
  };
}

async function openPostgres({ text }: StoreUrl, prefix: string | undefined): Promise<OpenBackend> {
  const { postgresLeaseBackend } = await import('@locks/postgres');
  const options = prefix === undefined ? {} : { schema: prefix };
  return {
    backend: postgresLeaseBackend(text, options),
    openSlots: async () => (await import('./slots/postgres-slots.ts')).postgresSlotsAt(text, prefix),
    examine: async () => (await import('@locks/postgres/doctor')).examinePostgres(text, options),
  };
}

async function openMysql({ text }: StoreUrl, prefix: string | undefined): Promise<OpenBackend> {
  const { mysqlBackend } = await import('@locks/mysql');
  const options = prefix === undefined ? {} : { tablePrefix: prefix };
  return {
    backend: mysqlBackend(text, options),
    openSlots: async () => (await import('./slots/mysql-slots.ts')).mysqlSlotsAt(text, prefix),
    examine: async () => (await import('@locks/mysql/doctor')).examineMysql(text, options),
  };
}

async function openEtcd(url: StoreUrl, prefix: string | undefined): Promise<OpenBackend> {
  const { etcdBackend } = await import('@locks/etcd');
  const hosts = etcdHosts(url);
  const options = prefix === undefined ? {} : { prefix };
  return {
    backend: etcdBackend({ hosts }, options),
    openSlots: async () => (await import('./slots/etcd-slots.ts')).etcdSlotsAt(hosts, prefix),
    examine: async () => (await import('@locks/etcd/doctor')).examineEtcd({ hosts }, options),
  };
}

async function openZookeeper(url: StoreUrl, prefix: string | undefined): Promise<OpenBackend> {
  const { zookeeperBackend, zookeeperSlots } = await import('@locks/zookeeper');
  const [servers, options] = [hostsOf(url), prefix === undefined ? {} : { path: prefix }];
  return {
    backend: zookeeperBackend(servers, options),
    openSlots: async () => zookeeperSlots(servers, options),
    examine: async () => (await import('@locks/zookeeper/doctor')).examineZookeeper(servers, options),
  };
}

async function openSqlite(url: StoreUrl, prefix: string | undefined): Promise<OpenBackend> {
  if (prefix !== undefined) throw new UsageError('--prefix: a SQLite file has none: take another file');
  const { sqliteBackend, sqliteSlots } = await import('@locks/sqlite');
  const path = sqlitePath(url);
  return {
    backend: sqliteBackend(path),
    // The file has the tokens and the slot store, so both are deleted together.
    openSlots: async () => sqliteSlots(path),
    examine: async () => (await import('@locks/sqlite/doctor')).examineSqlite(path),
  };
}

async function openFile(url: StoreUrl, prefix: string | undefined): Promise<OpenBackend> {
  if (prefix !== undefined) throw new UsageError('--prefix: a folder of locks has none: take another folder');
  const { fileBackend, fileSlots } = await import('@locks/file');
  const { folder, shared } = lockFolder(url);
  return {
    backend: fileBackend(folder, { shared }),
    openSlots: async () => fileSlots(folder, { shared }),
    examine: async () => (await import('@locks/file/doctor')).examineFile(folder, { shared }),
  };
}
