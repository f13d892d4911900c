import { testOpenMulti } from '@locks/test-servers/redis-clients/open-multi';
import { Redis } from 'ioredis';
import { redisBackend, redisSlots, redisResults } from '../src/index.ts';

testOpenMulti(({ port }) => {
  const client = new Redis({ port, host: '127.0.0.1' });
  return Promise.resolve({
    backend: redisBackend(client, { maxPollMs: 50 }),
    slots: redisSlots(client),
    results: redisResults(client),
    command: (name, ...args) => client.call(name, ...args),
    [Symbol.asyncDispose]: async () => client.disconnect(),
  });
});
