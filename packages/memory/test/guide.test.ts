import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const guide = new URL('../../../docs/guides/testing-code-that-locks.md', import.meta.url);

test('the tests of the guide to testing run, and pass', async () => {
  const [, code = ''] = /^```ts\n(.*?)^```$/ms.exec(readFileSync(guide, 'utf8')) ?? [];
  expect(code).toContain('memoryTestBackend');
  // It resolves the packages from here, as built.
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module-typescript', '--test-reporter=tap', '-e', code],
    { cwd: new URL('..', import.meta.url) },
  );
  expect(stdout).toMatch(/^# pass 5$/m);
  expect(stdout).toMatch(/^# fail 0$/m);
});
