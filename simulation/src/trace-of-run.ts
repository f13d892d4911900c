import { checkTrace, parseTrace, type TraceViolation } from '@locks/history';
import type { LockCode } from './process/lock-code.ts';
import { type RunResult, Simulation } from './simulation.ts';
import { drawPlan } from './workload/draw-plan.ts';
import type { BackendKind, PlanVariant } from './workload/plan.ts';

export interface TracedRun {
  readonly result: RunResult;
  readonly acquisitions: number;
  /** What `@locks/history` finds in the trace alone. */
  readonly found: readonly TraceViolation[];
}

/** Runs one schedule to its end, also after a violation, and judges its trace. */
export async function judgeTrace(
  code: LockCode,
  backend: BackendKind,
  seed: number,
  variant?: PlanVariant,
): Promise<TracedRun> {
  const plan = drawPlan(backend, seed, variant);
  const result = await new Simulation(code, plan, false, true).run();
  const trace = parseTrace(result.trace);
  if (trace.malformed.length > 0) throw new Error(JSON.stringify(trace.malformed[0]));
  // A copy of a request may come after its answer.
  const lateMs = plan.network.resent > 0 ? plan.network.slowMs + 2 * plan.network.latencyMs : 0;
  const { violations, acquisitions } = checkTrace(trace, { lateMs });
  return { result, acquisitions, found: violations };
}
