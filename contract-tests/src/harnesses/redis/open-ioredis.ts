import { fencedSet, type IoredisClient, redisBackend } from '@locks/redis-ioredis';
import { Cluster, Redis } from 'ioredis';
import type { RedisAddress } from './address.ts';
import type { OpenedClient } from './opened-client.ts';

export function openIoredis(address: RedisAddress): OpenedClient {
  const client = ioredisClient(address);
  // Each command reports its own failure, so events of the client are ignored.
  client.on('error', () => undefined);
  // Each of dozens of backends may add a listener to the client.
  client.setMaxListeners(0);
  return {
    backend: (options) => redisBackend(client as IoredisClient, options),
    fencedSet: (key, value, token) => fencedSet(client as IoredisClient, key, value, token),
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
        // Without this limit the client keeps a frozen master for as long as TCP does. (`failoverDetector` would do too, but a
        // switch that it notices while the client reconnects ends the client for good.)
        socketTimeout: 1_000,
      });
    case 'cluster':
      return new Cluster([...address.roots], { natMap: address.natMap });
  }
}
