import { testRenewalThread } from '../../../test-servers/src/renewal-thread/store-tests.ts';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import makeBackend from './fixtures/thread-backend.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'locks-'));
  process.env.LOCKS_TEST_FOLDER = join(folder, 'locks');
});
afterAll(() => rmSync(folder, { recursive: true }));

testRenewalThread(new URL('fixtures/thread-backend.ts', import.meta.url), makeBackend);
