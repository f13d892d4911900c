import { describe } from 'vitest';
import { seaweedfs } from './fixture.ts';
import { recordTests } from './record-tests.ts';

describe('records of a bucket of SeaweedFS', () => recordTests(seaweedfs, 4));
