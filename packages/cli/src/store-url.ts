import { UsageError } from './usage-error.ts';

export type StoreName = 'redis' | 'postgres' | 'mysql' | 'etcd' | 'zookeeper' | 'sqlite';

export interface StoreUrl {
  readonly store: StoreName;
  readonly protocol: string;
  /** The URL as it was given. */
  readonly text: string;
}

/** The store of each URL scheme. */
const SCHEMES: Readonly<Record<string, StoreName>> = {
  'redis:': 'redis',
  'rediss:': 'redis',
  'redis+sentinel:': 'redis',
  'rediss+sentinel:': 'redis',
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
  const protocol = /^[a-z][a-z+]*:/i.exec(text)?.[0].toLowerCase() ?? '';
  const store = SCHEMES[protocol];
  if (store === undefined) throw unknownScheme(text);
  if (store !== 'sqlite') checkUrl(text);
  // The client of PostgreSQL accepts a literal %, so its URL is not checked here.
  if (store === 'redis' || store === 'mysql') checkCredentials(text);
  return { store, protocol, text };
}

function unknownScheme(text: string): UsageError {
  const known = Object.keys(SCHEMES).map((scheme) => scheme.slice(0, -1));
  // A URL that cannot be parsed may contain a password: only a plain `host:port` is repeated in a message.
  if (/^[\w.-]+:\d+(\/\d*)?$/.test(text))
    return new UsageError(`"${text}" has no scheme: for Redis, redis://${text}; ${known.join(', ')} exist`);
  if (!URL.canParse(text)) return new UsageError('--url or LOCKS_URL is not a URL');
  return new UsageError(`no backend for "${new URL(text).protocol}": ${known.join(', ')} exist`);
}

function checkUrl(text: string): void {
  if (!text.includes('://')) throw new UsageError('--url or LOCKS_URL: // is missing behind the scheme');
  if (!URL.canParse(withOneHost(text))) throw new UsageError('--url or LOCKS_URL is not a URL');
}

function checkCredentials(text: string): void {
  const { username, password } = new URL(withOneHost(text));
  try {
    decodeURIComponent(username + password);
  } catch {
    throw new UsageError('--url or LOCKS_URL: a % in the user name or the password is written %25');
  }
}

/** Reduces a list of hosts to its first host, since a list is no URL. */
function withOneHost(text: string): string {
  return text.replace(/^([a-z+]+:\/\/[^,/?#]*),[^/?#]*/i, '$1');
}

/** The hosts and the path of a URL without its scheme and a last slash: `host:port,host:port/path`. */
export function hostsOf({ text }: StoreUrl): string {
  return text.slice(text.indexOf('://') + 3).replace(/\/$/, '');
}

/**
 * The addresses of the members of etcd.
 *
 * @throws UsageError
 */
export function etcdHosts(url: StoreUrl): string[] {
  if (hostsOf(url) === '')
    throw new UsageError('--url or LOCKS_URL: a host is missing: etcd://127.0.0.1:2379');
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
