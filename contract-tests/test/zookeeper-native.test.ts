import { fileURLToPath } from 'node:url';
import { testLockConformance } from '@locks/core/conformance/vitest';
import { vi } from 'vitest';
import harness from '../src/harnesses/zookeeper-native.ts';

// Fewer cases at once than elsewhere: the more connections the native library opens at once, the more it forgets.
vi.setConfig({ maxConcurrency: 6 });

testLockConformance(harness, {
  reportDirectory: fileURLToPath(new URL('../../conformance-report', import.meta.url)),
});
