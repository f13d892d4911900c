import { describe } from 'vitest';
import { startDynamodb } from '../src/index.ts';
import { httpServerTests } from './fixtures/http-server-tests.ts';

describe('a private DynamoDB Local', { timeout: 60_000 }, () => httpServerTests(startDynamodb));
