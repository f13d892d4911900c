import { testOpenMulti } from '@locks/test-servers/redis-clients/open-multi';
import { createClient } from 'redis';
import { redisBackend, redisSlots, redisResults } from '../src/index.ts';

testOpenMulti(async ({ url }) => {
  const client = createClient({ url });
  await client.connect();
  return {
    backend: redisBackend(client, { maxPollMs: 50 }),
    slots: redisSlots(client),
    results: redisResults(client),
    command: (...command) => client.sendCommand(command),
    [Symbol.asyncDispose]: async () => client.destroy(),
  };
});
