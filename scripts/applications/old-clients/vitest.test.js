// The binding to the oldest vitest that is supported.
import { testLockConformance } from '@locks/core/conformance/vitest';
import { harness } from '../harness.mjs';

testLockConformance(harness);
