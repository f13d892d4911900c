import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLocks, type LockManager } from '@locks/core';
import { memoryBackend } from '@locks/memory';
import { redisBackend as ioredisBackend } from '@locks/redis-ioredis';
import { redisBackend as nodeRedisBackend } from '@locks/redis-node';
import { sqliteBackend } from '@locks/sqlite';
import { startRedis } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { createClient } from 'redis';

export const backendNames = ['memory', 'sqlite', 'redis-ioredis', 'redis-node'] as const;
export type BackendName = (typeof backendNames)[number];

export function isBackendName(name: string): name is BackendName {
  return (backendNames as readonly string[]).includes(name);
}

/** How a worker reaches the store: can be sent to another process. */
export interface StoreAddress {
  readonly backend: BackendName;
  /** A file or a URL. */
  readonly at: string;
}

/** A store for one demo: a private file or server, or the server of REDIS_URL. */
export interface Store extends AsyncDisposable {
  readonly address: StoreAddress;
  /** In words. */
  readonly place: string;
  /** A directory that goes away with the store: the stock lies there. */
  readonly directory: string;
}

/** Locks, and the end of the connection under them. */
export interface Connection extends AsyncDisposable {
  readonly locks: LockManager;
}

export async function openStore(backend: BackendName): Promise<Store> {
  const directory = mkdtempSync(join(tmpdir(), 'locks-demo-'));
  const remove = (): void => rmSync(directory, { recursive: true, force: true });
  // Also on Ctrl-C, which ends the process by `exit`.
  process.once('exit', remove);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
  const server = await serverFor(backend);
  const at = server?.url ?? join(directory, 'locks.db');
  return {
    address: { backend, at },
    place: backend === 'memory' ? 'this process' : (server?.place ?? 'a private file'),
    directory,
    async [Symbol.asyncDispose]() {
      await server?.stop();
      remove();
    },
  };
}

async function serverFor(
  backend: BackendName,
): Promise<{ url: string; place: string; stop(): Promise<void> } | undefined> {
  if (backend === 'memory' || backend === 'sqlite') return undefined;
  const url = process.env['REDIS_URL'];
  if (url !== undefined && url !== '') return { url, place: 'the server of REDIS_URL', stop: async () => {} };
  const server = await startRedis();
  return { url: server.url, place: 'a private redis-server', stop: () => server.stop() };
}

/** What an application does once at its start. */
export async function connect({ backend, at }: StoreAddress): Promise<Connection> {
  switch (backend) {
    case 'memory':
      return connection(createLocks(memoryBackend()));
    case 'sqlite':
      return connection(createLocks(sqliteBackend({ path: at })));
    case 'redis-ioredis': {
      const client = new Redis(at);
      return connection(createLocks(ioredisBackend(client)), () => client.quit());
    }
    case 'redis-node': {
      const client = createClient({ url: at });
      client.on('error', (error: Error) => console.error(error.message));
      await client.connect();
      return connection(createLocks(nodeRedisBackend(client)), () => client.close());
    }
    default:
      return backend satisfies never;
  }
}

function connection(locks: LockManager, disconnect?: () => Promise<unknown>): Connection {
  return {
    locks,
    async [Symbol.asyncDispose]() {
      await locks.close();
      await disconnect?.();
    },
  };
}
