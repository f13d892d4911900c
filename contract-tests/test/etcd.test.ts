import { fileURLToPath } from 'node:url';
import { testLockConformance } from '@locks/core/conformance/vitest';
import { vi } from 'vitest';
import harness from '../src/harnesses/etcd.ts';

// Fewer cases at once than elsewhere: every step of etcd, and of its client, costs more CPU than those of the other stores.
vi.setConfig({ maxConcurrency: 5 });

testLockConformance(harness, {
  reportDirectory: fileURLToPath(new URL('../../conformance-report', import.meta.url)),
});
