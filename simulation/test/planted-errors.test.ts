import { expect, test } from 'vitest';
import { LockCode } from '../src/process/lock-code.ts';
import { runSchedules } from '../src/run-schedules.ts';
import { Simulation, type RunResult } from '../src/simulation.ts';
import { drawPlan } from '../src/workload/draw-plan.ts';
import type { PlantedError } from './planted-error.ts';
import { plantedErrors } from './planted-errors.ts';

/** A change of the sources may move an error to another schedule than the known one: the search goes on for so many. */
const SCHEDULES = 1_500;

test.each(plantedErrors)('on $backend the simulation finds that $what', async (error) => {
  const seed = await firstViolated(error);
  // The same schedule fails for no other reason.
  const { violations } = await runOf(await LockCode.load(error.backend), error, seed);
  expect(violations).toEqual([]);
});

/** The first schedule in which a planted error breaks a promise. How a violation is shrunk has a test of its own. */
async function firstViolated(error: PlantedError): Promise<number> {
  const code = await LockCode.load(error.backend, [error.change]);
  for (let seed = error.seed; seed < error.seed + SCHEDULES; seed += 1)
    if ((await runOf(code, error, seed)).violations.length > 0) return seed;
  return expect.fail(`${SCHEDULES} schedules from ${error.seed} on did not find it`);
}

function runOf(code: LockCode, { backend, variant }: PlantedError, seed: number): Promise<RunResult> {
  return new Simulation(code, drawPlan(backend, seed, variant)).run();
}

test('a planted error that fits no source is refused', async () => {
  const change = { file: 'core/src/lock.ts', from: 'no such line', to: '' };
  await expect(runSchedules({ backend: 'rules', seed: 1, schedules: 1, planted: [change] })).rejects.toThrow(
    'no such line',
  );
});
