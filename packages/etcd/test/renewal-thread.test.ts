import { testRenewalThread } from '@locks/test-servers/renewal-thread/store-tests';
import { beforeAll } from 'vitest';
import { useEtcd } from './fixture.ts';
import makeBackend from './fixtures/thread-backend.ts';

const etcd = useEtcd();
beforeAll(() => {
  process.env.LOCKS_TEST_URL = etcd.hosts();
});

testRenewalThread(new URL('fixtures/thread-backend.ts', import.meta.url), makeBackend, 2_000);
