import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { spawnServer } from '../src/server-process.ts';
import { waitUntil } from '../src/wait-until.ts';

const directory = await mkdtemp(path.join(tmpdir(), 'server-process-'));
afterAll(() => rm(directory, { recursive: true }));

const shell = (script: string) => spawnServer({ command: 'sh', args: ['-c', script], directory });

it('tells what this process printed, however much followed, and not what an earlier one did', async () => {
  const first = await shell('echo up; yes complaint | head -n 5000; echo over; sleep 60');
  await waitUntil(() => first.hasPrinted('over'), { what: 'the complaints' });
  expect(first.logTail(100)).not.toContain('up');
  expect(first.hasPrinted('up')).toBe(true);
  await first.kill();
  const second = await shell('echo here; sleep 60');
  await waitUntil(() => second.hasPrinted('here'), { what: 'the second one' });
  expect(second.hasPrinted('up')).toBe(false);
  await second.kill();
});
