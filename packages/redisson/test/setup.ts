import { Participant, startCluster, startRedis } from '@locks/test-servers';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster } from 'redis';
import { redissonBackend as onIoredis } from '../src/ioredis.ts';
import type { RedissonBackendOptions } from '../src/index.ts';
import { redissonBackend as onNodeRedis } from '../src/redis.ts';

interface At {
  readonly host: string;
  readonly port: number;
}

/** Opens a participant on each client library, on one server or a cluster. */
export const openers = {
  ioredis: async ({ host, port }: At, options?: RedissonBackendOptions) => {
    const client = new Redis({ host, port });
    client.on('error', () => undefined);
    return new Participant(onIoredis(client, options), () => client.disconnect());
  },
  'node-redis': async ({ host, port }: At, options?: RedissonBackendOptions) => {
    const client = createClient({ socket: { host, port } });
    client.on('error', () => undefined);
    await client.connect();
    return new Participant(onNodeRedis(client as never, options), () => client.destroy());
  },
} as const;

export const clusterOpeners = {
  ioredis: async (nodes: readonly At[], options?: RedissonBackendOptions) => {
    const client = new Cluster([...nodes]);
    client.on('error', () => undefined);
    return new Participant(onIoredis(client, options), () => client.disconnect());
  },
  'node-redis': async (nodes: readonly At[], options?: RedissonBackendOptions) => {
    const client = createCluster({
      rootNodes: nodes.map(({ host, port }) => ({ socket: { host, port } })),
    });
    client.on('error', () => undefined);
    await client.connect();
    return new Participant(onNodeRedis(client as never, options), () => client.destroy());
  },
} as const;

export { startCluster, startRedis };
export const libraries = ['ioredis', 'node-redis'] as const;
