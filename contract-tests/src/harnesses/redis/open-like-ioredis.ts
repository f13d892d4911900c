import { fencedSet, redisBackend } from '@locks/redis-ioredis';
import type { RedisAddress } from './address.ts';
import type { OpenedClient } from './opened-client.ts';

/** A client of another package for one server, which the adapter of ioredis takes as it is. */
export async function openLikeIoredis(
  library: 'iovalkey' | 'ioredis5',
  address: RedisAddress,
): Promise<OpenedClient> {
  if (address.kind !== 'standalone') throw new Error(`${library} is opened for one server only`);
  const { Redis } = library === 'iovalkey' ? await import('iovalkey') : await import('ioredis5');
  const client = new Redis(address.url);
  client.on('error', () => undefined);
  client.setMaxListeners(0);
  return {
    backend: (options) => redisBackend(client, options),
    fencedSet: (key, value, token) => fencedSet(client, key, value, token),
    set: (key, value) => client.set(key, value),
    end: () => client.disconnect(),
  };
}
