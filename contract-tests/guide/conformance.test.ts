import { testLockConformance } from '@locks/core/conformance/node-test';
import harness from './harness.ts';

testLockConformance(harness);
