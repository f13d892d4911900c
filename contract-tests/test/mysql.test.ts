import { fileURLToPath } from 'node:url';
import { testLockConformance } from '@locks/core/conformance/vitest';
import { vi } from 'vitest';
import harness from '../src/harnesses/mysql.ts';

// Fewer cases at once than elsewhere: its client takes more CPU than those of the other stores.
vi.setConfig({ maxConcurrency: 6 });

testLockConformance(harness, {
  reportDirectory: fileURLToPath(new URL('../../conformance-report', import.meta.url)),
});
