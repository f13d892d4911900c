import { UsageError } from './usage-error.ts';

export type StoreName = 'redis' | 'postgres' | 'mysql' | 'etcd' | 'zookeeper' | 'sqlite';

export interface StoreUrl {
  readonly store: StoreName;
  readonly protocol: string;
  /** The URL as it was given. */
  readonly text: string;
}

/** The stores of the schemes. */
const SCHEMES: Readonly<Record<string, StoreName>> = {
  'redis:': 'redis',
  'rediss:': 'redis',
  'postgres:': 'postgres',
  'postgresql:': 'postgres',
  'mysql:': 'mysql',
  'etcd:': 'etcd',
  'etcds:': 'etcd',
  'zookeeper:': 'zookeeper',
  'sqlite:': 'sqlite',
};

/** @throws UsageError */
export function readStoreUrl(text: string | undefined): StoreUrl {
  if (text === undefined || text === '') {
    throw new UsageError('no store: give --url, or set LOCKS_URL, for example redis://127.0.0.1:6379');
  }
  const { protocol } = parseUrl(text);
  const store = SCHEMES[protocol];
  if (store !== undefined) return { store, protocol, text };
  const known = Object.keys(SCHEMES).map((scheme) => scheme.slice(0, -1));
  throw new UsageError(`no backend for "${protocol}": ${known.join(', ')} exist`);
}

/** `host:port,host:port` of a URL with several hosts, with the path behind them but for a last slash. */
export function hostsOf({ text }: StoreUrl): string {
  return text.slice(text.indexOf('://') + 3).replace(/\/$/, '');
}

/** The addresses of the members of etcd. */
export function etcdHosts(url: StoreUrl): string[] {
  const scheme = url.protocol === 'etcds:' ? 'https' : 'http';
  return hostsOf(url)
    .split(',')
    .map((host) => `${scheme}://${host}`);
}

/** The path of a SQLite file. */
export function sqlitePath({ protocol, text }: StoreUrl): string {
  const path = text.slice(protocol.length);
  return path.startsWith('//') ? path.slice(2) : path;
}

function parseUrl(text: string): URL {
  // A list of hosts is no URL: the first one stands for all here.
  const first = text.replace(/^([a-z]+:\/\/[^,/?#]*),[^/?#]*/, '$1');
  if (!URL.canParse(first)) throw new UsageError('--url or LOCKS_URL is not a URL');
  return new URL(first);
}
