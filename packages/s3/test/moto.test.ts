import { describe } from 'vitest';
import { server } from './fixture.ts';
import { recordTests } from './record-tests.ts';

describe('records of a bucket of moto', () => recordTests(server, 20));
