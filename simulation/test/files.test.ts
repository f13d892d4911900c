import { afterAll, beforeAll, expect, test } from 'vitest';
import { FileSchedule } from '../src/files/file-schedule.ts';
import { FileWorkers } from '../src/files/file-workers.ts';
import { runFileSchedules } from '../src/files/run-file-schedules.ts';
import { fileErrors } from './planted-errors-files.ts';

/** The search for an error goes on for so many. */
const SCHEDULES = 600;

let workers: FileWorkers;
beforeAll(async () => {
  workers = await FileWorkers.load();
});
afterAll(() => workers[Symbol.dispose]());

test('a seed gives the same timeline each time, also after other runs', async () => {
  const timelineOf = (on: FileWorkers, seed: number): string[] =>
    new FileSchedule(on, seed, true)
      .run()
      .timeline.map((line) => line.replaceAll(/locks-simulation-\w+/g, ''));
  using others = await FileWorkers.load();
  for (let seed = 1; seed < 20; seed += 1) timelineOf(others, seed + 100);
  for (let seed = 1; seed < 40; seed += 1)
    expect(timelineOf(others, seed)).toEqual(timelineOf(workers, seed));
});

test('every kind of fault happens, and no rule is broken', async () => {
  const report = await runFileSchedules({ seed: 1, schedules: 200 });
  expect(report.violations).toEqual([]);
  expect(Object.keys(report.faults).sort()).toEqual([
    'full disk',
    'kill',
    'late names',
    'short write',
    'stand still',
  ]);
});

test.each(fileErrors)('the simulation finds that $what', async ({ change, rule }) => {
  using planted = await FileWorkers.load([change]);
  const isFoundIn = (seed: number): boolean =>
    new FileSchedule(planted, seed).run().violation?.clause === rule;
  let seed = 1;
  while (!isFoundIn(seed)) {
    seed += 1;
    expect(seed, `${SCHEDULES} schedules do not find that a rule of ${rule} is broken`).toBeLessThan(
      SCHEDULES,
    );
  }
  // The same schedule fails for no other reason.
  expect(new FileSchedule(workers, seed).run().violation).toBeUndefined();
});
