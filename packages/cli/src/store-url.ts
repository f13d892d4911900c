import { fileURLToPath } from 'node:url';
import { UsageError } from './usage-error.ts';

export type StoreName =
  | 'redis'
  | 'postgres'
  | 'mysql'
  | 'etcd'
  | 'zookeeper'
  | 'sqlite'
  | 'file'
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
  'file:': 'file',
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
    // An empty variable may be that of a server whose address is missing: locks of this machine alone would not do in its place.
    throw new UsageError(
      'no store: --url or LOCKS_URL is empty: redis://127.0.0.1:6379, for example; without both the locks are those of this user on this machine',
    );
  }
  const protocol = /^[a-z][a-z0-9+]*:/i.exec(text)?.[0].toLowerCase() ?? '';
  const store = SCHEMES[protocol];
  if (store === undefined) throw unknownScheme(text);
  if (store !== 'sqlite' && store !== 'file') checkUrl(text);
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

/**
 * The folder of `file:///path/to/folder`, or of `file:folder` from where the command was called.
 *
 * @throws UsageError
 */
export function lockFolder({ text }: StoreUrl): { readonly folder: string; readonly shared: boolean } {
  const form = 'file:///path/to/folder, or with ?shared=true for several users';
  const [, place = '', query = ''] = /^file:([^?#]*)\??(.*)$/is.exec(text) ?? [];
  if (place === '') throw new UsageError(`--url or LOCKS_URL: a folder is missing: ${form}`);
  const shared = readParameters(query, form, ['shared']).get('shared') ?? 'false';
  if (shared !== 'true' && shared !== 'false')
    throw new UsageError(`--url or LOCKS_URL: shared is true or false, not "${shared}"`);
  return {
    folder: place.startsWith('/') ? pathIn(`file:${place}`, form) : decoded(place),
    shared: shared === 'true',
  };
}

function pathIn(url: string, form: string): string {
  try {
    return fileURLToPath(url);
  } catch (error) {
    throw new UsageError(`--url or LOCKS_URL: ${(error as Error).message}: ${form}`);
  }
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
