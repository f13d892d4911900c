import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';

const resets = fileURLToPath(new URL('fixtures/resets.ts', import.meta.url));

// A process of its own: what goes wrong here is that it never ends, with one core busy.
it.each(['at-once', 'with-data', 'after-the-end', 'before-the-end'])(
  'a process whose socket was reset %s closes it and ends',
  async (moment) => {
    const { stdout } = await promisify(execFile)(process.execPath, [resets, moment], {
      timeout: 10_000,
      killSignal: 'SIGKILL',
    });
    expect(stdout.trim()).toBe('closed');
  },
  20_000,
);
