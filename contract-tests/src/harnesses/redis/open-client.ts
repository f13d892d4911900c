import type { RedisAddress } from './address.ts';
import type { OpenedClient } from './opened-client.ts';

/** The adapters of clients that serve every topology, by the names of their backends. */
export const libraries = ['redis-ioredis', 'redis-node'] as const;
/** Clients of one server: GLIDE has none for Sentinel, iovalkey takes the place of ioredis, and Upstash is reached by HTTP. */
export const moreLibraries = ['redis-glide', 'iovalkey', 'upstash'] as const;
export type Library = (typeof libraries)[number] | (typeof moreLibraries)[number];

/** Loads only the library that is needed: dozens of child processes start with it. */
export async function openClient(library: Library, address: RedisAddress): Promise<OpenedClient> {
  switch (library) {
    case 'redis-ioredis':
      return (await import('./open-ioredis.ts')).openIoredis(address);
    case 'redis-node':
      return await (await import('./open-node-redis.ts')).openNodeRedis(address);
    case 'redis-glide':
      return await (await import('./open-glide.ts')).openGlide(address);
    case 'iovalkey':
      return (await import('./open-iovalkey.ts')).openIovalkey(address);
    case 'upstash':
      return await (await import('./open-upstash.ts')).openUpstash(address);
  }
}
