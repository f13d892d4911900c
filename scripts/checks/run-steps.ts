import { inBackground } from './command.ts';
import type { Step, StepContext, StepReport, StepResult } from './step.ts';

const TIMED_AT_ONCE = 4;
/** One core stays with the timed ones. */
const BESIDE_TIMED = 1;
const STATIC_ALONE = 2;

/**
 * Runs all steps, whatever fails: the timed ones and in their pauses the static ones, then one by one those that run
 * alone. What may have failed by chance is repeated when nothing else runs.
 * Gives the reports in the order of the steps.
 */
export async function runSteps(
  steps: readonly Step[],
  context: StepContext,
  onReport: (report: StepReport) => void,
  stopped: () => boolean,
): Promise<StepReport[]> {
  const reports = new Map<Step, StepReport>();
  const run = async (step: Step) => {
    if (stopped()) return;
    const report = await runStep(step, context);
    reports.set(step, report);
    onReport(report);
    if (step.kind === 'alone') await repeat(step);
  };
  const repeat = async (step: Step) => {
    const before = reports.get(step);
    if (stopped() || !before?.again) return;
    const repeated = await reportOf(step, before.again);
    const report = { ...repeated, seconds: before.seconds + repeated.seconds };
    reports.set(step, report);
    onReport(report);
  };

  const allOf = async (kind: Step['kind'], atOnce: number) => {
    const rest = steps.filter((step) => step.kind === kind);
    const worker = async () => {
      for (let step = rest.shift(); step; step = rest.shift()) await run(step);
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
  };

  const timed = steps.filter(({ kind }) => kind === 'timed');
  await Promise.all([
    allOf('timed', TIMED_AT_ONCE),
    inBackground(() => allOf('static', timed.length > 0 ? BESIDE_TIMED : STATIC_ALONE)),
  ]);
  for (const step of timed) await repeat(step);
  await allOf('alone', 1);

  return steps.flatMap((step) => reports.get(step) ?? []);
}

async function runStep(step: Step, context: StepContext): Promise<StepReport> {
  const missing = (step.needs ?? []).filter((server) => context.missing.has(server));
  if (missing.length > 0) {
    const output = `needs a server that is missing here: ${missing.join(', ')}`;
    return { name: step.name, seconds: 0, outcome: 'not run', passed: 0, failed: 0, output };
  }
  return await reportOf(step, () => step.run(context));
}

async function reportOf(step: Step, run: () => Promise<StepResult>): Promise<StepReport> {
  const start = performance.now();
  const result = await run().catch(
    (error: unknown): StepResult => ({
      passed: 0,
      failed: 1,
      output: error instanceof Error ? (error.stack ?? error.message) : String(error),
    }),
  );
  const seconds = (performance.now() - start) / 1_000;
  return { ...result, name: step.name, seconds, outcome: result.failed > 0 ? 'failed' : 'ok' };
}
