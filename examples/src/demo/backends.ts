import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ServerKind, serverOf } from './servers.ts';

/** The server that each backend needs. */
const servers = {
  memory: undefined,
  sqlite: undefined,
  file: undefined,
  'redis-ioredis': 'redis',
  'redis-node': 'redis',
  'postgres-lease': 'postgres',
  'postgres-advisory': 'postgres',
  mysql: 'mysql',
  zookeeper: 'zookeeper',
  etcd: 'etcd',
} as const satisfies Record<string, ServerKind | undefined>;

/** Where the locks are without a server. */
const PLACES: Readonly<Record<string, string>> = {
  memory: 'this process',
  sqlite: 'a private file',
  file: 'a private folder',
};

export type BackendName = keyof typeof servers;

export const backendNames = Object.keys(servers) as BackendName[];

/** `postgres` alone is its first backend. */
export function backendNamed(name: string): BackendName | undefined {
  return backendNames.find((known) => known === (name === 'postgres' ? 'postgres-lease' : name));
}

export function serverKindOf(backend: BackendName): ServerKind | undefined {
  return servers[backend];
}

/** How a worker reaches the store: can be sent to another process. */
export interface StoreAddress {
  readonly backend: BackendName;
  /** A file, a URL, or a connect string. */
  readonly at: string;
}

/** A store for one demo: a private file, folder or server, or the user's own server. */
export interface Store extends AsyncDisposable {
  readonly address: StoreAddress;
  /** In words. */
  readonly place: string;
  /** A directory that goes away with the store: the stock lies there. */
  readonly directory: string;
}

export async function openStore(backend: BackendName): Promise<Store> {
  const directory = mkdtempSync(join(tmpdir(), 'locks-demo-'));
  const remove = (): void => rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
  // Also on Ctrl-C, which ends the process by `exit`.
  process.once('exit', remove);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
  const kind = serverKindOf(backend);
  const server = kind === undefined ? undefined : await serverOf(kind);
  return {
    address: { backend, at: server?.at ?? join(directory, 'locks') },
    place: server?.place ?? (PLACES[backend] as string),
    directory,
    async [Symbol.asyncDispose]() {
      await server?.stop();
      remove();
    },
  };
}
