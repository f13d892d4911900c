import type { Step, StepContext, StepReport, StepResult } from './step.ts';

const atOnce = 2;

/**
 * Runs all steps, whatever fails: the static ones two at a time, then the timed ones one by one.
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
  };

  const rest = steps.filter((step) => step.kind === 'static');
  const worker = async () => {
    for (let step = rest.shift(); step; step = rest.shift()) await run(step);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  for (const step of steps) if (step.kind === 'timed') await run(step);

  return steps.flatMap((step) => reports.get(step) ?? []);
}

async function runStep(step: Step, context: StepContext): Promise<StepReport> {
  const missing = (step.needs ?? []).filter((server) => context.missing.has(server));
  if (missing.length > 0) {
    const output = `needs a server that is missing here: ${missing.join(', ')}`;
    return { name: step.name, seconds: 0, outcome: 'not run', passed: 0, failed: 0, output };
  }
  const start = performance.now();
  const result = await step.run(context).catch(
    (error: unknown): StepResult => ({
      passed: 0,
      failed: 1,
      output: error instanceof Error ? (error.stack ?? error.message) : String(error),
    }),
  );
  const seconds = (performance.now() - start) / 1_000;
  return { ...result, name: step.name, seconds, outcome: result.failed > 0 ? 'failed' : 'ok' };
}
