import { fileURLToPath } from 'node:url';
import { testLockConformance } from '@locks/core/conformance/vitest';
import harness from '../src/harnesses/session-sqlite.ts';

// A fixture, not a backend of ours: its report stays out of the matrix.
testLockConformance(harness, {
  reportDirectory: fileURLToPath(new URL('../../conformance-report/fixtures', import.meta.url)),
});
