import { expect, test } from 'vitest';
import { LockCode } from '../src/process/lock-code.ts';
import { runSchedules } from '../src/run-schedules.ts';
import { Simulation } from '../src/simulation.ts';
import { drawPlan } from '../src/workload/draw-plan.ts';
import { plantedErrors } from './planted-errors.ts';

/** Three times as many as the slowest of them took, and more. */
const SCHEDULES = 1_500;

test.each(plantedErrors)(
  'on $backend the simulation finds that $what',
  async ({ backend, change, seed, handsOver = false }) => {
    const report = await runSchedules({
      backend,
      seed,
      schedules: SCHEDULES,
      mostViolations: 1,
      planted: [change],
      handsOver,
    });
    const [violation] = report.violations;
    expect(violation?.timeline.length).toBeGreaterThan(0);
    // The same schedule fails for no other reason.
    const sound = new Simulation(
      await LockCode.load(backend),
      drawPlan(backend, violation?.seed ?? 0, handsOver),
    );
    expect((await sound.run()).violations).toEqual([]);
  },
);

test('a planted error that fits no source is refused', async () => {
  const change = { file: 'core/src/lock.ts', from: 'no such line', to: '' };
  await expect(runSchedules({ backend: 'rules', seed: 1, schedules: 1, planted: [change] })).rejects.toThrow(
    'no such line',
  );
});
