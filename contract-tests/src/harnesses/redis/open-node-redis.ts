import { fencedSet, type NodeRedisClient, redisBackend } from '@locks/redis-node';
import { createClient, createCluster, createSentinel } from 'redis';
import type { RedisAddress } from './address.ts';
import type { OpenedClient } from './opened-client.ts';

export async function openNodeRedis(address: RedisAddress): Promise<OpenedClient> {
  const client = nodeRedisClient(address);
  client.on('error', () => undefined);
  client.setMaxListeners(0);
  await client.connect();
  return {
    backend: (options) => redisBackend(client as NodeRedisClient, options),
    fencedSet: (key, value, token) => fencedSet(client as NodeRedisClient, key, value, token),
    set: (key, value) => client.set(key, value),
    end: async () => {
      if (client.isOpen) await client.destroy();
    },
  };
}

export function nodeRedisClient(address: RedisAddress) {
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
