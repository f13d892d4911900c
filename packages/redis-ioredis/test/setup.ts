import type { RedisBackendOptions } from '@locks/redis-protocol';
import { Participant } from '@locks/test-servers';
import { Redis, type RedisOptions } from 'ioredis';
import { redisBackend } from '../src/index.ts';

export class IoredisParticipant extends Participant {
  readonly client: Redis;

  constructor(client: Redis, options: RedisBackendOptions) {
    super(redisBackend(client, options), () => client.disconnect());
    this.client = client;
  }
}

export function participant(
  { port }: { readonly port: number },
  options: RedisBackendOptions = {},
  clientOptions: RedisOptions = {},
): IoredisParticipant {
  const client = new Redis({ port, host: '127.0.0.1', ...clientOptions });
  client.on('error', () => undefined);
  return new IoredisParticipant(client, options);
}
