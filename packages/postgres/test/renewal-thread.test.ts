import { testRenewalThread } from '@locks/test-servers/renewal-thread/store-tests';
import { afterAll, beforeAll } from 'vitest';
import { LeaseFixture } from './lease-fixture.ts';
import makeBackend from './fixtures/thread-backend.ts';

let fixture: LeaseFixture;
beforeAll(async () => {
  fixture = await LeaseFixture.start();
  process.env.LOCKS_TEST_URL = fixture.server.url;
  await fixture.prepare({});
});
afterAll(() => fixture[Symbol.asyncDispose]());

testRenewalThread(new URL('fixtures/thread-backend.ts', import.meta.url), makeBackend);
