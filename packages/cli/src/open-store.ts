import { createLocks, type LockBackend, type LockManager } from '@locks/core';
import { UsageError } from './usage-error.ts';

export interface Store extends AsyncDisposable {
  readonly locks: LockManager;
  /** The last error of the connection, where the client reports it apart from the calls. */
  connectionError(): Error | undefined;
}

interface OpenBackend {
  readonly backend: LockBackend;
  /** Closes the client that was opened for the backend. */
  readonly closeClient?: () => unknown;
  readonly connectionError?: () => Error | undefined;
}

type Open = (url: URL, text: string, prefix: string | undefined) => Promise<OpenBackend>;

/** How to open the store of a URL, by its scheme. */
const SCHEMES: Readonly<Record<string, Open>> = {
  'redis:': openRedis,
  'rediss:': openRedis,
  'postgres:': openPostgres,
  'postgresql:': openPostgres,
  'mysql:': openMysql,
  'etcd:': openEtcd,
  'etcds:': openEtcd,
  'zookeeper:': openZookeeper,
  'sqlite:': openSqlite,
};

/**
 * Opens the store of a URL. Only the adapter and the client of that store are loaded. No request is sent.
 *
 * @throws UsageError, and LockError `LOCK_INVALID_ARGUMENT` for what an adapter refuses
 */
export async function openStore(text: string | undefined, prefix: string | undefined): Promise<Store> {
  if (text === undefined || text === '') {
    throw new UsageError('no store: give --url, or set LOCKS_URL, for example redis://127.0.0.1:6379');
  }
  const url = parseUrl(text);
  const open = SCHEMES[url.protocol];
  if (open === undefined) {
    const known = Object.keys(SCHEMES).map((scheme) => scheme.slice(0, -1));
    throw new UsageError(`no backend for "${url.protocol}": ${known.join(', ')} exist`);
  }
  const { backend, closeClient, connectionError } = await open(url, text, prefix);
  // Each command passes its own options.
  const locks: LockManager = createLocks(backend);
  return {
    locks,
    connectionError: () => connectionError?.(),
    async [Symbol.asyncDispose]() {
      await locks.close();
      await closeClient?.();
    },
  };
}

function parseUrl(text: string): URL {
  // A list of hosts is no URL: the first one stands for all here.
  const first = text.replace(/^([a-z]+:\/\/[^,/?#]*),[^/?#]*/, '$1');
  if (!URL.canParse(first)) throw new UsageError('--url or LOCKS_URL is not a URL');
  return new URL(first);
}

/** `host:port,host:port` of a URL with several hosts, with the path behind them but for a last slash. */
function hostsOf(text: string): string {
  return text.slice(text.indexOf('://') + 3).replace(/\/$/, '');
}

async function openRedis(_url: URL, text: string, prefix: string | undefined): Promise<OpenBackend> {
  const { redisBackend } = await import('@locks/redis-ioredis');
  const { Redis } = await import('ioredis');
  const client = new Redis(text);
  let last: Error | undefined;
  client.on('error', (error) => (last = error));
  return {
    backend: redisBackend(client, prefix === undefined ? {} : { prefix }),
    closeClient: () => client.disconnect(),
    connectionError: () => last,
  };
}

async function openPostgres(_url: URL, text: string, prefix: string | undefined): Promise<OpenBackend> {
  const { postgresLeaseBackend } = await import('@locks/postgres');
  const schema = prefix === undefined ? {} : { schema: prefix };
  return { backend: postgresLeaseBackend({ connectionString: text, ...schema }) };
}

async function openMysql(_url: URL, text: string, prefix: string | undefined): Promise<OpenBackend> {
  const { mysqlBackend } = await import('@locks/mysql');
  const tablePrefix = prefix === undefined ? {} : { tablePrefix: prefix };
  return { backend: mysqlBackend({ uri: text, ...tablePrefix }) };
}

async function openEtcd({ protocol }: URL, text: string, prefix: string | undefined): Promise<OpenBackend> {
  const { etcdBackend } = await import('@locks/etcd');
  const scheme = protocol === 'etcds:' ? 'https' : 'http';
  const hosts = hostsOf(text)
    .split(',')
    .map((host) => `${scheme}://${host}`);
  return { backend: etcdBackend({ hosts }, prefix === undefined ? {} : { prefix }) };
}

async function openZookeeper(_url: URL, text: string, prefix: string | undefined): Promise<OpenBackend> {
  const { zookeeperBackend } = await import('@locks/zookeeper');
  const path = prefix === undefined ? {} : { path: prefix };
  return { backend: zookeeperBackend({ servers: hostsOf(text), ...path }) };
}

async function openSqlite(url: URL, text: string, prefix: string | undefined): Promise<OpenBackend> {
  if (prefix !== undefined) throw new UsageError('--prefix: a SQLite file has none: take another file');
  const { sqliteBackend } = await import('@locks/sqlite');
  const path = text.slice(url.protocol.length);
  return { backend: sqliteBackend({ path: path.startsWith('//') ? path.slice(2) : path }) };
}
