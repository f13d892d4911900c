import { fileURLToPath } from 'node:url';
import { testLockConformance } from '@locks/core/conformance/vitest';
import harness from '../src/harnesses/quorum-redis-ioredis.ts';

testLockConformance(harness, {
  reportDirectory: fileURLToPath(new URL('../../conformance-report', import.meta.url)),
});
