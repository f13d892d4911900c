import { testLockConformance } from '@locks/core/conformance/node-test';
import harness from './map-backend.ts';

testLockConformance(harness);
