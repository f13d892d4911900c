import { redisBackend as ioredisBackend } from '@locks/redis-ioredis';
import type { RedisBackendOptions } from '@locks/redis-protocol';
import { Participant } from '@locks/test-servers';
import { Cluster, Redis } from 'ioredis';
import { createClient, createCluster, createSentinel, type RedisClientOptions } from 'redis';
import { redisBackend } from '../src/index.ts';

const quiet = () => undefined;

export interface Address {
  readonly port: number;
}

export async function nodeRedisParticipant(
  { port }: Address,
  options?: RedisBackendOptions,
  socket: NonNullable<RedisClientOptions['socket']> = {},
): Promise<Participant> {
  const client = createClient({ url: `redis://127.0.0.1:${port}`, socket });
  client.on('error', quiet);
  await client.connect();
  return new Participant(redisBackend(client, options), () => client.destroy());
}

export function ioredisParticipant({ port }: Address, options?: RedisBackendOptions): Promise<Participant> {
  const client = new Redis(port, '127.0.0.1');
  client.on('error', quiet);
  return Promise.resolve(new Participant(ioredisBackend(client, options), () => client.disconnect()));
}

export async function nodeRedisClusterParticipant(roots: readonly Address[]): Promise<Participant> {
  const client = createCluster({
    rootNodes: roots.map(({ port }) => ({ url: `redis://127.0.0.1:${port}` })),
  });
  client.on('error', quiet);
  await client.connect();
  return new Participant(redisBackend(client), () => client.destroy());
}

export function ioredisClusterParticipant(roots: readonly Address[]): Promise<Participant> {
  const client = new Cluster(roots.map(({ port }) => ({ host: '127.0.0.1', port })));
  client.on('error', quiet);
  return Promise.resolve(new Participant(ioredisBackend(client), () => client.disconnect()));
}

export async function nodeRedisSentinelParticipant(
  sentinels: readonly Address[],
  name: string,
): Promise<Participant> {
  const sentinelRootNodes = sentinels.map(({ port }) => ({ host: '127.0.0.1', port }));
  const client = createSentinel({ name, sentinelRootNodes, scanInterval: 500 });
  client.on('error', quiet);
  await client.connect();
  return new Participant(redisBackend(client), () => client.destroy());
}

export function ioredisSentinelParticipant(
  sentinels: readonly Address[],
  name: string,
): Promise<Participant> {
  const client = new Redis({ sentinels: sentinels.map(({ port }) => ({ host: '127.0.0.1', port })), name });
  client.on('error', quiet);
  return Promise.resolve(new Participant(ioredisBackend(client), () => client.disconnect()));
}
