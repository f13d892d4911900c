import { testLockConformance } from '@locks/core/conformance/node-test';
import harness from './blob-harness.ts';

testLockConformance(harness);
