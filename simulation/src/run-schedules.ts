import { LockCode } from './process/lock-code.ts';
import type { SourceChange } from './process/source-change.ts';
import type { LateWrites } from './checks/fenced-resource.ts';
import { shrink } from './shrink.ts';
import { Simulation } from './simulation.ts';
import { timelineOf } from './timeline.ts';
import { drawPlan } from './workload/draw-plan.ts';
import type { BackendKind, PlanVariant } from './workload/plan.ts';

/** What `npm run simulate -- --json FILE` writes. */
export interface SimulationReport {
  readonly backend: BackendKind | 'file';
  /** Of the first schedule; each of the others has the next number. */
  readonly seed: number;
  readonly schedules: number;
  readonly seconds: number;
  /** Of the processor: on a machine that is busy with other work, less than `seconds`. */
  readonly processorSeconds: number;
  /** How many simulated events happened, in all schedules together. */
  readonly steps: number;
  /** How often each kind of fault happened. */
  readonly faults: Readonly<Record<string, number>>;
  /** What the documents of a store allow that lost data by itself. */
  readonly expected: readonly ExpectedViolation[];
  /** What former holders wrote to what the locks protect, and how much of it the fence stopped. */
  readonly lateWrites: LateWrites;
  readonly violations: readonly FoundViolation[];
}

/** How often a promise could not be kept, since the store lost data. */
export interface ExpectedViolation {
  readonly clause: string;
  readonly count: number;
  /** The first run in which it happened. */
  readonly seed: number;
  readonly message: string;
}

export interface FoundViolation {
  readonly seed: number;
  /** Of docs/spec.md; of files, which rule of a store of records. */
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
  readonly planted?: readonly SourceChange[];
  /** @defaultValue the run as the seed draws it */
  readonly variant?: PlanVariant | undefined;
}

/** Runs schedules, one after the other, each from its own seed. */
export async function runSchedules(options: ScheduleOptions): Promise<SimulationReport> {
  const { backend, planted, variant } = options;
  const code = await LockCode.load(backend, planted);
  const expected = new Map<string, ExpectedViolation>();
  const lateWrites: LateWrites = { late: 0, stopped: 0 };
  const figures = await countRuns(options, async (seed) => {
    const result = await new Simulation(code, drawPlan(backend, seed, variant)).run();
    for (const { clause, message } of result.expected) {
      const first = expected.get(clause) ?? { clause, count: 0, seed, message };
      expected.set(clause, { ...first, count: first.count + 1 });
    }
    lateWrites.late += result.lateWrites.late;
    lateWrites.stopped += result.lateWrites.stopped;
    const isBroken = result.violations.length > 0;
    return { ...result, violation: isBroken ? await explain(code, backend, seed, variant) : undefined };
  });
  return { ...figures, backend, expected: [...expected.values()], lateWrites };
}

/** What a run adds to the report. */
interface CountedRun {
  readonly steps: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly violation: FoundViolation | undefined;
}

/** Makes one run after the other until one of the limits is reached, and adds up. */
export async function countRuns(
  { seed, schedules, seconds = Infinity, mostViolations = 3 }: Omit<ScheduleOptions, 'backend'>,
  run: (seed: number) => Promise<CountedRun>,
): Promise<Omit<SimulationReport, 'backend' | 'expected' | 'lateWrites'>> {
  const startedAt = performance.now();
  const usedBefore = process.cpuUsage();
  const elapsed = (): number => (performance.now() - startedAt) / 1_000;
  const faults: Record<string, number> = {};
  const violations: FoundViolation[] = [];
  let steps = 0;
  let done = 0;
  while (done < schedules && elapsed() < seconds && violations.length < mostViolations) {
    const result = await run(seed + done);
    if (result.violation !== undefined) violations.push(result.violation);
    steps += result.steps;
    for (const [kind, count] of Object.entries(result.faults)) faults[kind] = (faults[kind] ?? 0) + count;
    done += 1;
  }
  const { user, system } = process.cpuUsage(usedBefore);
  const processorSeconds = (user + system) / 1e6;
  return { seed, schedules: done, seconds: elapsed(), processorSeconds, steps, faults, violations };
}

/** The violation of a seed, if it has one, with the smallest run that fails for the same reason. */
export async function explain(
  code: LockCode,
  backend: BackendKind,
  seed: number,
  variant?: PlanVariant,
): Promise<FoundViolation | undefined> {
  const plan = drawPlan(backend, seed, variant);
  const [found] = (await new Simulation(code, plan).run()).violations;
  if (found === undefined) return undefined;
  const smallest = await shrink(code, plan, found.clause);
  const result = await new Simulation(code, smallest, true).run();
  const [{ clause, message } = found] = result.violations;
  return { seed, clause, message, timeline: timelineOf(result) };
}
