import type { RedisAddress } from './address.ts';
import type { OpenedClient } from './opened-client.ts';

/** The adapters, by the names of their backends. */
export const libraries = ['redis-ioredis', 'redis-node'] as const;
export type Library = (typeof libraries)[number];

/** Loads only the library that is needed: dozens of child processes start with it. */
export async function openClient(library: Library, address: RedisAddress): Promise<OpenedClient> {
  if (library === 'redis-ioredis') return (await import('./open-ioredis.ts')).openIoredis(address);
  return await (await import('./open-node-redis.ts')).openNodeRedis(address);
}
