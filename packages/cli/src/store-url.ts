import { UsageError } from './usage-error.ts';

export type StoreName =
  | 'redis'
  | 'postgres'
  | 'mysql'
  | 'etcd'
  | 'zookeeper'
  | 'sqlite'
  | 'dynamodb'
  | 's3'
  | 'nats'
  | 'mongodb'
  | 'kubernetes';

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
  'dynamodb:': 'dynamodb',
  's3:': 's3',
  'nats:': 'nats',
  'mongodb:': 'mongodb',
  'mongodb+srv:': 'mongodb',
  'kubernetes:': 'kubernetes',
};

/** @throws UsageError */
export function readStoreUrl(text: string | undefined): StoreUrl {
  if (text === undefined || text === '') {
    throw new UsageError('no store: give --url, or set LOCKS_URL, for example redis://127.0.0.1:6379');
  }
  const protocol = /^[a-z][a-z0-9+]*:/i.exec(text)?.[0].toLowerCase() ?? '';
  const store = SCHEMES[protocol];
  if (store === undefined) throw unknownScheme(text);
  if (store !== 'sqlite') checkUrl(text);
  // The client of PostgreSQL accepts a literal %, so its URL is not checked here.
  if (store === 'redis' || store === 'mysql' || store === 'nats') checkCredentials(text);
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
  return text.replace(/^([a-z0-9+]+:\/\/[^,/?#]*),[^/?#]*/i, '$1');
}

/** The hosts and the path of a URL without its scheme and a last slash: `host:port,host:port/path`. */
export function hostsOf({ store, text }: StoreUrl): string {
  // The URLs of Redis and SQL databases go to their clients, which know what a password is.
  if (text.includes('@'))
    throw new UsageError(`--url or LOCKS_URL: a user and a password are not supported for ${store}`);
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

/** The host, the path and the parameters of a URL whose host is the name of something: a region, a bucket, a namespace. */
export interface NamedUrl {
  readonly host: string;
  /** Without its first slash, decoded. */
  readonly path: string;
  readonly parameters: ReadonlyMap<string, string>;
}

/**
 * Reads a URL without credentials: those are found where the client of the store looks for them.
 *
 * @param form - how such a URL looks, for the message
 * @param known - the parameters that it may have
 * @throws UsageError
 */
export function readNamedUrl({ store, text }: StoreUrl, form: string, known: readonly string[]): NamedUrl {
  if (text.includes('@'))
    throw new UsageError(`--url or LOCKS_URL: a user and a password are not supported for ${store}`);
  const [, host = '', path = '', query = ''] = /^[^:]+:\/\/([^/?]*)\/?([^?]*)\??(.*)$/.exec(text) ?? [];
  return { host, path: decoded(path), parameters: readParameters(query, form, known) };
}

/** @throws UsageError for a parameter that is not known: a misspelt one would be ignored */
function readParameters(query: string, form: string, known: readonly string[]): ReadonlyMap<string, string> {
  const parameters = new Map(new URLSearchParams(query));
  for (const name of parameters.keys())
    if (!known.includes(name))
      throw new UsageError(`--url or LOCKS_URL: unknown parameter "${name}": ${form}`);
  return parameters;
}

/** @throws UsageError */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new UsageError('--url or LOCKS_URL: a % is written %25');
  }
}
