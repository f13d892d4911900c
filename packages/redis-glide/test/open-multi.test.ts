import { testOpenMulti } from '@locks/test-servers/redis-clients/open-multi';
import { redisBackend, redisSlots, redisResults } from '../src/index.ts';
import { glideClient } from './setup.ts';

testOpenMulti(async (server) => {
  const client = await glideClient(server);
  return {
    backend: redisBackend(client, { maxPollMs: 50 }),
    slots: redisSlots(client),
    results: redisResults(client),
    command: (...command) => client.customCommand(command),
    [Symbol.asyncDispose]: async () => client.close(),
  };
});
