import { redisBackend as ioredisBackend } from '@locks/redis-ioredis';
import { Participant, type RestBridge } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { upstashBackend, type UpstashBackendOptions } from '../src/index.ts';

export function upstashParticipant(
  { url, token }: Pick<RestBridge, 'url' | 'token'>,
  options: Partial<UpstashBackendOptions> = {},
): Participant {
  return new Participant(upstashBackend({ url, token }, options), () => undefined);
}

export function ioredisParticipant({ port }: { readonly port: number }): Participant {
  const client = new Redis(port, '127.0.0.1');
  client.on('error', () => undefined);
  return new Participant(ioredisBackend(client), () => client.disconnect());
}
