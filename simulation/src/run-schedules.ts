import { LockCode, type SourceChange } from './process/lock-code.ts';
import { shrink } from './shrink.ts';
import { Simulation } from './simulation.ts';
import { timelineOf } from './timeline.ts';
import { drawPlan } from './workload/draw-plan.ts';
import type { BackendKind } from './workload/plan.ts';

/** What `npm run simulate -- --json FILE` writes. */
export interface SimulationReport {
  readonly backend: BackendKind;
  /** Of the first schedule; each of the others has the next number. */
  readonly seed: number;
  readonly schedules: number;
  readonly seconds: number;
  /** How many simulated events happened, in all schedules together. */
  readonly steps: number;
  /** How often each kind of fault happened. */
  readonly faults: Readonly<Record<string, number>>;
  /** What a store allows that lost data by itself: none of the simulated stores does. */
  readonly expected: readonly FoundViolation[];
  readonly violations: readonly FoundViolation[];
}

export interface FoundViolation {
  readonly seed: number;
  /** Of docs/spec.md. */
  readonly clause: string;
  readonly message: string;
  /** What happened in the smallest run that fails for the same reason, line by line. */
  readonly timeline: readonly string[];
}

export interface ScheduleOptions {
  readonly backend: BackendKind;
  readonly seed: number;
  readonly schedules: number;
  /** No schedule begins after this time. @defaultValue `Infinity` */
  readonly seconds?: number;
  /** The run ends after so many violations. @defaultValue 3 */
  readonly mostViolations?: number;
  /** Errors that a test plants in the sources. */
  readonly changes?: readonly SourceChange[];
}

/** Runs schedules, one after the other, each from its own seed. */
export async function runSchedules(options: ScheduleOptions): Promise<SimulationReport> {
  const { backend, seed, schedules, seconds = Infinity, mostViolations = 3, changes } = options;
  const code = await LockCode.load(backend, changes);
  const startedAt = performance.now();
  const elapsed = (): number => (performance.now() - startedAt) / 1_000;
  const faults: Record<string, number> = {};
  const violations: FoundViolation[] = [];
  let steps = 0;
  let done = 0;
  while (done < schedules && elapsed() < seconds && violations.length < mostViolations) {
    const result = await new Simulation(code, drawPlan(backend, seed + done)).run();
    if (result.violations.length > 0) violations.push(...(await explain(code, backend, seed + done)));
    steps += result.steps;
    for (const [kind, count] of Object.entries(result.faults)) faults[kind] = (faults[kind] ?? 0) + count;
    done += 1;
  }
  return { backend, seed, schedules: done, seconds: elapsed(), steps, faults, expected: [], violations };
}

/** The violation of a seed, if it has one, with the timeline of the smallest run that fails for the same reason. */
export async function explain(code: LockCode, backend: BackendKind, seed: number): Promise<FoundViolation[]> {
  const plan = drawPlan(backend, seed);
  const [found] = (await new Simulation(code, plan).run()).violations;
  if (found === undefined) return [];
  const smallest = await shrink(code, plan, found.clause);
  const result = await new Simulation(code, smallest, true).run();
  const [shown = found] = result.violations;
  return [{ seed, clause: shown.clause, message: shown.message, timeline: timelineOf(result) }];
}
