import { expect, test } from 'vitest';
import { LockCode } from '../src/process/lock-code.ts';
import { runSchedules } from '../src/run-schedules.ts';
import { Simulation } from '../src/simulation.ts';
import { timelineOf } from '../src/timeline.ts';
import { drawPlan } from '../src/workload/draw-plan.ts';
import { BACKEND_KINDS } from '../src/workload/plan.ts';

test.each(BACKEND_KINDS)('a seed gives the same timeline each time, on %s', async (backend) => {
  const code = await LockCode.load(backend);
  const other = await LockCode.load(backend);
  for (let seed = 100; seed < 130; seed += 1) {
    const first = await new Simulation(code, drawPlan(backend, seed), true).run();
    const second = await new Simulation(other, drawPlan(backend, seed), true).run();
    expect(timelineOf(second)).toEqual(timelineOf(first));
    expect(second.steps).toBe(first.steps);
  }
});

test.each(BACKEND_KINDS)('a run is the same after other runs as alone, on %s', async (backend) => {
  const used = await LockCode.load(backend);
  for (let seed = 0; seed < 40; seed += 1) await new Simulation(used, drawPlan(backend, seed)).run();
  for (let seed = 40; seed < 46; seed += 1) {
    const alone = await new Simulation(await LockCode.load(backend), drawPlan(backend, seed), true).run();
    const after = await new Simulation(used, drawPlan(backend, seed), true).run();
    expect(timelineOf(after)).toEqual(timelineOf(alone));
  }
});

test('where Redis loses data, two may hold: that is counted, and the fence stops every late write', async () => {
  const expected = new Set<string>();
  const faults = new Set<string>();
  const lost = ['eviction', 'failover', 'restart', 'slot migration'];
  let lateWrites = 0;
  // Until all of it has happened: `npm run simulate` runs more schedules of Redis, with the same checks.
  for (let seed = 1; seed < 1_500; seed += 100) {
    const report = await runSchedules({ backend: 'redis', seed, schedules: 100 });
    expect(report.violations).toEqual([]);
    expect(report.lateWrites.stopped).toBe(report.lateWrites.late);
    lateWrites += report.lateWrites.late;
    for (const { clause } of report.expected) expected.add(clause);
    for (const fault of Object.keys(report.faults)) faults.add(fault);
    if (expected.has('§11.1') && lateWrites > 0 && lost.every((fault) => faults.has(fault))) break;
  }
  expect(expected).toContain('§11.1');
  expect(lateWrites).toBeGreaterThan(0);
  expect([...faults]).toEqual(expect.arrayContaining(lost));
});

test('seeds give different runs, and real time does not pass in them', async () => {
  const code = await LockCode.load('rules');
  const timelines = new Set<string>();
  let longestMs = 0;
  for (let seed = 0; seed < 40; seed += 1) {
    const result = await new Simulation(code, drawPlan('rules', seed), true).run();
    timelines.add(timelineOf(result).join('\n'));
    longestMs = Math.max(longestMs, result.timeline.at(-1)?.at ?? 0);
  }
  expect(timelines.size).toBe(40);
  expect(longestMs).toBeGreaterThan(2_000);
});

test('every kind of fault happens, and no promise is broken', async () => {
  const report = await runSchedules({ backend: 'rules', seed: 1, schedules: 400 });
  expect(report.violations).toEqual([]);
  expect(report.schedules).toBe(400);
  expect(Object.keys(report.faults).sort()).toEqual([
    'close',
    'crash',
    'lost push',
    'lost reply',
    'lost request',
    'partition',
    'pause',
    'resent request',
    'reset',
    'sleep',
    'slow message',
    'stall',
    'store away',
    'wall clock',
  ]);
});

test('a violation is shrunk to a run that fails for the same reason, and is shorter', async () => {
  const change = {
    file: 'core/src/rules/lock-rules.ts',
    from: 'return this.#queue.length === 0 && this.fits(mode);',
    to: 'return this.fits(mode);',
  };
  const report = await runSchedules({
    backend: 'rules',
    seed: 1,
    schedules: 500,
    mostViolations: 1,
    planted: [change],
  });
  const [violation] = report.violations;
  expect(violation?.clause).toBe('§7.1');
  const code = await LockCode.load('rules', [change]);
  const whole = await new Simulation(code, drawPlan('rules', violation?.seed ?? 0), true).run();
  expect(violation?.timeline.length).toBeLessThan(whole.timeline.length);
  expect(violation?.timeline.at(-1)).toContain('§7.1 violated');
});
