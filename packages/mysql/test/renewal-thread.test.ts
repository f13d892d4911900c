import { testRenewalThread } from '@locks/test-servers/renewal-thread/store-tests';
import { beforeAll } from 'vitest';
import { theServer, useServer } from './fixture.ts';
import makeBackend from './fixtures/thread-backend.ts';

useServer();
beforeAll(() => {
  process.env.LOCKS_TEST_URL = theServer().url;
});

testRenewalThread(new URL('fixtures/thread-backend.ts', import.meta.url), makeBackend);
