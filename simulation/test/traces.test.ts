import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { LockCode } from '../src/process/lock-code.ts';
import { judgeTrace } from '../src/trace-of-run.ts';
import { BACKEND_KINDS, type BackendKind } from '../src/workload/plan.ts';
import { plantedErrors } from './planted-errors.ts';
import { plantedInTraces, tableOfPlanted } from './planted-in-traces.ts';

const SCHEDULES = 200;
/** Each of these schedules lets processes transfer their leases. */
const EVERY = 4;
const TRANSFERS: readonly BackendKind[] = ['rules', 'redis', 'record'];

test.each(BACKEND_KINDS)('no trace of a schedule breaks a rule, on %s', async (backend) => {
  const code = await LockCode.load(backend);
  let acquisitions = 0;
  for (let seed = 1; seed <= SCHEDULES; seed += 1) {
    const variant = TRANSFERS.includes(backend) && seed % EVERY === 0 ? 'transfer' : undefined;
    const run = await judgeTrace(code, backend, seed, variant);
    expect({ seed, found: run.found }).toEqual({ seed, found: [] });
    acquisitions += run.acquisitions;
  }
  expect(acquisitions).toBeGreaterThan(SCHEDULES);
});

const shown = plantedErrors.flatMap((error) => {
  const found = plantedInTraces[`${error.backend}: ${error.what}`];
  return found === undefined ? [] : [{ ...error, ...found }];
});

test.each(shown)('on $backend the trace alone shows, by the rule $rule, that $what', async (error) => {
  const { backend, rule, change, variant } = error;
  const code = await LockCode.load(backend, [change]);
  let { seed } = error;
  // A change of the sources may move an error to another schedule.
  while (!(await judgeTrace(code, backend, seed, variant)).found.some((one) => one.rule === rule)) {
    seed += 1;
    if (seed > error.seed + SCHEDULES)
      expect.fail(`${SCHEDULES} schedules from ${error.seed} on did not show it`);
  }
  // The same schedule breaks no rule without the error.
  const sound = await judgeTrace(await LockCode.load(backend), backend, seed, variant);
  expect(sound.found).toEqual([]);
});

test('the list names planted errors, and the page on traces has its table', () => {
  expect(shown).toHaveLength(Object.keys(plantedInTraces).length);
  const page = readFileSync(join(import.meta.dirname, '../../docs/traces.md'), 'utf8');
  expect(page).toContain(tableOfPlanted(plantedErrors));
});
