import type { RedisAddress } from './address.ts';
import type { OpenedClient } from './opened-client.ts';

/** The adapters of clients that serve every topology, by the names of their backends. */
export const libraries = ['redis-ioredis', 'redis-node'] as const;
/** Clients of one server or of a cluster: GLIDE has none for Sentinel, and the others take the place of ioredis. */
export const moreLibraries = ['redis-glide', 'iovalkey', 'ioredis5'] as const;
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
    case 'ioredis5':
      return await (await import('./open-like-ioredis.ts')).openLikeIoredis(library, address);
  }
}
