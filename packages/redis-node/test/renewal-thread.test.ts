import { testRenewalThread } from '@locks/test-servers/renewal-thread/store-tests';
import { redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { beforeAll } from 'vitest';
import makeBackend from './fixtures/thread-backend.ts';

useRedis();
beforeAll(() => {
  process.env.LOCKS_TEST_PORT = String(redis.port);
});

testRenewalThread(new URL('fixtures/thread-backend.ts', import.meta.url), makeBackend);
