import { createLocks } from '@locks/core';
import { memoryBackend, MemoryStore } from '@locks/memory';
import { expect, it } from 'vitest';
import { type JobLog, runOnce } from '../src/nightly-job.ts';

function jobLog(): JobLog {
  const done = new Set<string>();
  return {
    isDone: async (job, night) => done.has(`${job} ${night}`),
    markDone: async (job, night) => void done.add(`${job} ${night}`),
  };
}

it('runs once a night, on whichever machine and whenever it is started', async () => {
  const store = new MemoryStore();
  const machines = Array.from({ length: 3 }, () => createLocks(memoryBackend(store)));
  const log = jobLog();
  let runs = 0;
  const work = async (): Promise<void> => {
    runs += 1;
    await new Promise((resolve) => setTimeout(resolve, 20));
  };
  const outcomes = await Promise.all(
    machines.map((locks) => runOnce(locks, log, 'invoices', '2026-11-20', work)),
  );
  expect(outcomes.sort()).toEqual(['ran', 'somebody-is-at-it', 'somebody-is-at-it']);
  const [late] = machines;
  expect(late && (await runOnce(late, log, 'invoices', '2026-11-20', work))).toBe('already-done');
  expect(late && (await runOnce(late, log, 'invoices', '2026-11-21', work))).toBe('ran');
  expect(runs).toBe(2);
  await Promise.all(machines.map((locks) => locks.close()));
});
