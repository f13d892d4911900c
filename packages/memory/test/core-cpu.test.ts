import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

const run = promisify(execFile);
const script = fileURLToPath(new URL('core-cpu.ts', import.meta.url));

test('core’s own work on an uncontended acquire and release is a few times that of the bare memory backend', {
  timeout: 60_000,
}, async () => {
  // In a process of its own: a test runner’s transforms and hooks are not what is measured.
  const { stdout } = await run(process.execPath, [script], { env: { ...process.env, ROUNDS: '7' } });
  const { coreMicros, bareMicros } = JSON.parse(stdout) as { coreMicros: number; bareMicros: number };
  expect(coreMicros).toBeGreaterThan(0);
  // A ratio, since machines differ by a factor of four. Loose, since this one may be busy: alone it is about 3.
  expect(coreMicros / bareMicros).toBeLessThan(6);
});
