import { testLockConformance } from '@locks/core/conformance/node-test';
import harness from './fair-harness.ts';

testLockConformance(harness);
