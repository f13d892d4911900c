import { describe } from 'vitest';
import { startSeaweedfs } from '../src/index.ts';
import { httpServerTests } from './fixtures/http-server-tests.ts';

describe('a private SeaweedFS', { timeout: 60_000 }, () => httpServerTests(startSeaweedfs));
