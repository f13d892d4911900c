import { fileURLToPath } from 'node:url';
import { testLockConformance } from '@locks/core/conformance/vitest';
import harness from '../src/harnesses/quorum-memory.ts';

// The suite's own stores: its report stays out of the matrix, where quorum-redis stands.
testLockConformance(harness, {
  reportDirectory: fileURLToPath(new URL('../../conformance-report/fixtures', import.meta.url)),
});
