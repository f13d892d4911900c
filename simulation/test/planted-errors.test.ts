import { expect, test } from 'vitest';
import { runSchedules } from '../src/run-schedules.ts';
import { plantedErrors } from './planted-errors.ts';

/** Three times as many as the slowest of them took, and more. */
const SCHEDULES = 3_000;

test.each(plantedErrors)('the simulation finds that $what', async ({ backend, change }) => {
  const report = await runSchedules({
    backend,
    seed: 1,
    schedules: SCHEDULES,
    mostViolations: 1,
    planted: { changes: [change] },
  });
  expect(report.violations).toHaveLength(1);
  expect(report.violations[0]?.timeline.length).toBeGreaterThan(0);
});

test('a planted error that fits no source is refused', async () => {
  const change = { file: 'core/src/lock.ts', from: 'no such line', to: '' };
  await expect(
    runSchedules({ backend: 'rules', seed: 1, schedules: 1, planted: { changes: [change] } }),
  ).rejects.toThrow('no such line');
});
