import { testOpenMulti } from '@locks/test-servers/redis-clients/open-multi';
import { Redis } from 'ioredis';
import { redissonBackend } from '../src/ioredis.ts';

testOpenMulti(({ port }) => {
  const client = new Redis({ port, host: '127.0.0.1' });
  return Promise.resolve({
    backend: redissonBackend(client, { maxPollMs: 50 }),
    command: (name, ...args) => client.call(name, ...args),
    [Symbol.asyncDispose]: async () => client.disconnect(),
  });
});
