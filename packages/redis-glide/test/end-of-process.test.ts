import { testEndOfProcess } from '@locks/test-servers/redis-clients/client-tests';

testEndOfProcess(new URL('fixtures/contended-once.ts', import.meta.url));
