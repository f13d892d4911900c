import { fencedSet, redisBackend } from '@locks/redis-ioredis';
import { Redis } from 'iovalkey';
import type { RedisAddress } from './address.ts';
import type { OpenedClient } from './opened-client.ts';

/** A client of iovalkey for one server: the adapter of ioredis takes it as it is. */
export function openIovalkey(address: RedisAddress): OpenedClient {
  if (address.kind !== 'standalone') throw new Error('iovalkey is opened for one server only');
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
