import { redisBackend as ioredisBackend } from '@locks/redis-ioredis';
import type { RedisBackendOptions } from '@locks/redis-protocol';
import { Participant } from '@locks/test-servers';
import {
  GlideClient,
  type GlideClientConfiguration,
  GlideClusterClient,
  type GlideClusterClientConfiguration,
  Logger,
} from '@valkey/valkey-glide';
import { Cluster, Redis } from 'ioredis';
import { redisBackend } from '../src/index.ts';

Logger.init('off');

const quiet = () => undefined;

export interface Address {
  readonly port: number;
}

export function glideClient(
  { port }: Address,
  configuration: Partial<GlideClientConfiguration> = {},
): Promise<GlideClient> {
  return GlideClient.createClient({
    addresses: [{ host: '127.0.0.1', port }],
    requestTimeout: 2_000,
    ...configuration,
  });
}

export function glideClusterClient(
  roots: readonly Address[],
  configuration: Partial<GlideClusterClientConfiguration> = {},
): Promise<GlideClusterClient> {
  const addresses = roots.map(({ port }) => ({ host: '127.0.0.1', port }));
  return GlideClusterClient.createClient({ addresses, requestTimeout: 2_000, ...configuration });
}

export async function glideParticipant(
  server: Address,
  options?: RedisBackendOptions,
  configuration?: Partial<GlideClientConfiguration>,
): Promise<Participant> {
  const client = await glideClient(server, configuration);
  return new Participant(redisBackend(client, options), () => client.close());
}

export async function glideClusterParticipant(roots: readonly Address[]): Promise<Participant> {
  const client = await glideClusterClient(roots);
  return new Participant(redisBackend(client), () => client.close());
}

export function ioredisParticipant({ port }: Address, options?: RedisBackendOptions): Promise<Participant> {
  const client = new Redis(port, '127.0.0.1');
  client.on('error', quiet);
  return Promise.resolve(new Participant(ioredisBackend(client, options), () => client.disconnect()));
}

export function ioredisClusterParticipant(roots: readonly Address[]): Promise<Participant> {
  const client = new Cluster(roots.map(({ port }) => ({ host: '127.0.0.1', port })));
  client.on('error', quiet);
  return Promise.resolve(new Participant(ioredisBackend(client), () => client.disconnect()));
}
