import { describe } from 'vitest';
import { startMoto } from '../src/index.ts';
import { httpServerTests } from './fixtures/http-server-tests.ts';

describe('a private moto', { timeout: 60_000 }, () => httpServerTests(startMoto));
