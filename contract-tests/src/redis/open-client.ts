import {
  fencedSet as nodeFencedSet,
  type NodeRedisClient,
  redisBackend as nodeRedisBackend,
} from '@locks/redis-node';
import {
  fencedSet as ioredisFencedSet,
  type IoredisClient,
  type RedisBackendOptions,
  type RedisCapabilities,
  redisBackend as ioredisBackend,
} from '@locks/redis-ioredis';
import type { LockBackend } from '@locks/core/backend';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster, createSentinel } from 'redis';
import type { RedisAddress } from './address.ts';

/** The adapters, by the names of their backends. */
export const libraries = ['redis-ioredis', 'redis-node'] as const;
export type Library = (typeof libraries)[number];

/** A client as a user would make it, and what ends it. */
export interface OpenClient {
  backend(options?: RedisBackendOptions): LockBackend<RedisCapabilities>;
  fencedSet(key: string, value: string, token: bigint): Promise<void>;
  /** The same write without the fence. */
  set(key: string, value: string): Promise<unknown>;
  end(): void | Promise<void>;
}

export async function openClient(library: Library, address: RedisAddress): Promise<OpenClient> {
  return library === 'redis-ioredis' ? openIoredis(address) : openNodeRedis(address);
}

function openIoredis(address: RedisAddress): OpenClient {
  const client = ioredisClient(address);
  // Every command tells its own failure.
  client.on('error', () => undefined);
  // Each backend on it listens, and there may be dozens.
  client.setMaxListeners(0);
  return {
    backend: (options) => ioredisBackend(client as IoredisClient, options),
    fencedSet: (key, value, token) => ioredisFencedSet(client as IoredisClient, key, value, token),
    set: (key, value) => client.set(key, value),
    end: () => client.disconnect(),
  };
}

export function ioredisClient(address: RedisAddress): Redis | Cluster {
  switch (address.kind) {
    case 'standalone':
      return new Redis(address.url);
    case 'sentinel':
      return new Redis({
        name: address.name,
        sentinels: [...address.sentinels],
        natMap: address.natMap,
        // Without it the client stays with a master that is frozen for as long as TCP does. (`failoverDetector` would
        // do too, but a switch that it hears of while the client reconnects ends the client for good.)
        socketTimeout: 1_000,
      });
    case 'cluster':
      return new Cluster([...address.roots], { natMap: address.natMap });
  }
}

async function openNodeRedis(address: RedisAddress): Promise<OpenClient> {
  const client = nodeRedisClient(address);
  client.on('error', () => undefined);
  client.setMaxListeners(0);
  await client.connect();
  return {
    backend: (options) => nodeRedisBackend(client as NodeRedisClient, options),
    fencedSet: (key, value, token) => nodeFencedSet(client as NodeRedisClient, key, value, token),
    set: (key, value) => client.set(key, value),
    end: async () => {
      if (client.isOpen) await client.destroy();
    },
  };
}

function nodeRedisClient(address: RedisAddress) {
  switch (address.kind) {
    case 'standalone':
      return createClient({ url: address.url });
    case 'sentinel':
      return createSentinel({
        name: address.name,
        sentinelRootNodes: [...address.sentinels],
        ...(address.natMap && { nodeAddressMap: address.natMap }),
      });
    case 'cluster':
      return createCluster({
        rootNodes: address.roots.map((socket) => ({ socket })),
        ...(address.natMap && { nodeAddressMap: address.natMap }),
      });
  }
}
