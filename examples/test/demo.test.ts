import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { backendNames, serverKindOf } from '../src/demo/backends.ts';

const MAIN = fileURLToPath(new URL('../src/demo/main.ts', import.meta.url));
const run = promisify(execFile);

// Servers that the step "servers" has reported as missing.
const missing = new Set(process.env['LOCKS_MISSING_SERVERS']?.split(','));
const runnable = backendNames.filter((name) => !missing.has(String(serverKindOf(name))));

it.concurrent.each(runnable)(
  'oversells without the lock and never with it, on %s',
  { timeout: 60_000 },
  async (backend) => {
    const args = [MAIN, '--backend', backend, '--workers', '3', '--sales', '40', '--json'];
    const { stdout } = await run(process.execPath, args);
    const report = JSON.parse(stdout);
    expect(report.ok).toBe(true);
    expect(report.unlocked.oversold).toBeGreaterThan(0);
    expect(report.locked).toMatchObject({ sold: 40, oversold: 0 });
  },
);

it.each([['--backend', 'mongo'], ['--workers', '1'], ['--sales', 'many'], ['--nonsense']])(
  'refuses %s %s with its usage and exit code 2',
  async (...args) => {
    const failure = await run(process.execPath, [MAIN, ...args]).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 2, stderr: expect.stringContaining('usage:') });
  },
);
