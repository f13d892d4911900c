import { fileURLToPath } from 'node:url';
import { testLockConformance } from '@locks/core/conformance/vitest';
import { vi } from 'vitest';
import harness from '../src/harnesses/zookeeper-ensemble.ts';

// Fewer cases at once than elsewhere: three servers share the machine with the clients.
vi.setConfig({ maxConcurrency: 6 });

testLockConformance(harness, {
  reportDirectory: fileURLToPath(new URL('../../conformance-report', import.meta.url)),
});
