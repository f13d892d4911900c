import { fileURLToPath } from 'node:url';
import { testLockConformance } from '@locks/core/conformance/vitest';
import harness from '../src/harnesses/memory-semaphore.ts';

// In place of the mutex: its report stays out of the matrix.
testLockConformance(harness, {
  reportDirectory: fileURLToPath(new URL('../../conformance-report/fixtures', import.meta.url)),
});
