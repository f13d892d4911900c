import { fencedSet, redisBackend, type ValkeyGlideClient } from '@locks/redis-glide';
import { GlideClient, GlideClusterClient, Logger } from '@valkey/valkey-glide';
import { serverIn } from '../connections/server-url.ts';
import type { RedisAddress } from './address.ts';
import type { OpenedClient } from './opened-client.ts';

// Each command reports its own failure, so what the client logs beside it is ignored.
Logger.init('off');

/** Servers that are cut off and frozen on purpose shall not be given up for the client's default of 250 ms. */
const REQUEST_MS = 2_000;

export async function openGlide(address: RedisAddress): Promise<OpenedClient> {
  const client = await glideClient(address);
  return {
    backend: (options) => redisBackend(client as ValkeyGlideClient, options),
    fencedSet: (key, value, token) => fencedSet(client as ValkeyGlideClient, key, value, token),
    set: (key, value) => client.set(key, value),
    end: () => client.close(),
  };
}

export async function glideClient(address: RedisAddress): Promise<GlideClient | GlideClusterClient> {
  switch (address.kind) {
    case 'standalone':
      return GlideClient.createClient({
        addresses: [serverIn(address.url)],
        requestTimeout: REQUEST_MS,
      });
    case 'sentinel':
      throw new Error('GLIDE has no client for Sentinel');
    case 'cluster':
      return GlideClusterClient.createClient({
        addresses: [...address.roots],
        requestTimeout: REQUEST_MS,
        ...(address.natMap && {
          addressResolver: (host, port): [string, number] => {
            const mapped = address.natMap?.[`${host}:${port}`];
            return mapped === undefined ? [host, port] : [mapped.host, mapped.port];
          },
        }),
      });
  }
}
