import type { Step, StepContext, StepReport, StepResult } from './step.ts';

const atOnce = { static: 2, timed: 4, alone: 1 } as const;

/**
 * Runs all steps, whatever fails: the static ones, then the timed ones, then one by one those that run alone.
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

  for (const kind of ['static', 'timed', 'alone'] as const) {
    const rest = steps.filter((step) => step.kind === kind);
    const worker = async () => {
      for (let step = rest.shift(); step; step = rest.shift()) await run(step);
    };
    await Promise.all(Array.from({ length: atOnce[kind] }, worker));
  }

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
