import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { StoreUrl } from './store-url.ts';
import { UsageError } from './usage-error.ts';

export type RedisClient = Redis | Cluster;

/** The parts of a Redis URL. */
export interface RedisUrl {
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  /** The name of the master, where the hosts are sentinels. */
  readonly master: string | undefined;
  readonly database: number;
  /** The URL itself, where it names one server: the client understands more of it than is documented here. */
  readonly text: string | undefined;
  /** User, password and TLS. */
  readonly login: Pick<RedisOptions, 'username' | 'password' | 'tls'>;
  /** User and password of the sentinels. */
  readonly sentinelLogin: Pick<RedisOptions, 'sentinelUsername' | 'sentinelPassword'>;
}

/**
 * Options of every client. No connection keeps the process alive before the first command, and a missing one is not waited for.
 */
const OPTIONS = { lazyConnect: true, disconnectTimeout: 100 };

/** @throws UsageError */
export function readRedisUrl({ text, protocol }: StoreUrl): RedisUrl {
  const [, login = '', hosts = '', path = '', query = ''] =
    /^[^:]+:\/\/(?:([^/?]*)@)?([^/?]*)\/?([^?]*)\??(.*)$/.exec(text) ?? [];
  const isSentinel = protocol.endsWith('+sentinel:');
  const [first = '', ...more] = path.split('/');
  const [master, database = ''] = isSentinel
    ? [decodeURIComponent(first), more.join('/')]
    : [undefined, path];
  if (master === '')
    throw new UsageError(
      '--url or LOCKS_URL: the name of the master is missing: redis+sentinel://HOST:26379,HOST:26379/MASTER',
    );
  if (!/^\d*$/.test(database))
    throw new UsageError(
      `--url or LOCKS_URL: a database of Redis is a number, not "${database}": redis://HOST:PORT/0`,
    );
  const list = hosts.split(',').map((one) => hostAndPort(one, isSentinel ? 26_379 : 6_379));
  const [username, ...password] = login.split(':').map(decodeURIComponent);
  const parameters = new URLSearchParams(query);
  return {
    hosts: list,
    master,
    database: Number(database),
    text: list.length === 1 && !isSentinel ? text : undefined,
    login: given({
      username,
      password: password.join(':'),
      tls: protocol.startsWith('rediss') ? {} : undefined,
    }),
    sentinelLogin: given({
      sentinelUsername: parameters.get('sentinelUsername'),
      sentinelPassword: parameters.get('sentinelPassword'),
    }),
  };
}

/** A client of one server, of the master that sentinels name, or of a cluster of which several hosts are named. */
export function redisClient(address: RedisUrl, options: RedisOptions = {}): RedisClient {
  const { hosts, master, database: db, text, login, sentinelLogin } = address;
  if (text !== undefined) return new Redis(text, { ...OPTIONS, ...options });
  if (master === undefined) return clusterClient(address, options);
  return new Redis({
    ...OPTIONS,
    ...options,
    ...login,
    ...sentinelLogin,
    sentinels: [...hosts],
    name: master,
    db,
  });
}

export function clusterClient({ hosts, login }: RedisUrl, options: RedisOptions = {}): Cluster {
  return new Cluster([...hosts], { lazyConnect: true, redisOptions: { ...OPTIONS, ...options, ...login } });
}

/** Tells whether the server of a connected client is a cluster node; `false` where the user may not ask. */
export async function isClusterNode(client: RedisClient): Promise<boolean> {
  if (client.isCluster) return false;
  const info = await (client as Redis).info('cluster').catch(() => '');
  return /^cluster_enabled:1/m.test(info);
}

function hostAndPort(text: string, defaultPort: number): { host: string; port: number } {
  if (!URL.canParse(`tcp://${text}`)) throw new UsageError(`--url or LOCKS_URL: "${text}" is no host:port`);
  const { hostname, port } = new URL(`tcp://${text}`);
  return { host: hostname.replace(/^\[(.*)\]$/, '$1') || '127.0.0.1', port: Number(port || defaultPort) };
}

/** Copies options without their empty values. */
function given<T extends object>(options: T): { [Key in keyof T]?: NonNullable<T[Key]> } {
  const entries = Object.entries(options).filter(
    ([, value]) => value !== undefined && value !== null && value !== '',
  );
  return Object.fromEntries(entries) as { [Key in keyof T]?: NonNullable<T[Key]> };
}
