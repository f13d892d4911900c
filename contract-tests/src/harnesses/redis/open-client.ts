import type { RedisBackendOptions, RedisCapabilities } from '@locks/redis-ioredis';
import type { LockBackend } from '@locks/core/backend';
import type { RedisAddress } from './address.ts';

/** The adapters, by the names of their backends. */
export const libraries = ['redis-ioredis', 'redis-node'] as const;
export type Library = (typeof libraries)[number];

/** A client as a user would make it, with a function that ends it. */
export interface OpenClient {
  backend(options?: RedisBackendOptions): LockBackend<RedisCapabilities>;
  fencedSet(key: string, value: string, token: bigint): Promise<void>;
  /** The same write without the fence. */
  set(key: string, value: string): Promise<unknown>;
  end(): void | Promise<void>;
}

/** Loads only the library that is needed: dozens of child processes start with it. */
export async function openClient(library: Library, address: RedisAddress): Promise<OpenClient> {
  if (library === 'redis-ioredis') return (await import('./open-ioredis.ts')).openIoredis(address);
  return await (await import('./open-node-redis.ts')).openNodeRedis(address);
}
