import { fileURLToPath } from 'node:url';
import { testLockConformance } from '@locks/core/conformance/node-test';
import harness from './harnesses/memory.mjs';

testLockConformance(harness, {
  reportDirectory: fileURLToPath(
    new URL(`../../conformance-report/node-test/node-${process.versions.node}`, import.meta.url),
  ),
});
