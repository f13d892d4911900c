import { inBackground } from './command.ts';
import { measured } from './processor-time.ts';
import type { Step, StepContext, StepReport, StepResult } from './step.ts';

/** In CI nobody waits for the minutes that this saves, and a missed bound of time costs a whole run. */
const isCi = Boolean(process.env['CI']);
const TIMED_AT_ONCE = isCi ? 2 : 4;

/**
 * Runs all steps, whatever fails: the timed ones and in their pauses the static ones, one beside them and two after them
 * (in CI all of them before); then those that run alone, one by one. What may have failed by chance is repeated when nothing
 * else runs. Returns the reports in the order of the steps.
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
    const report = {
      ...repeated,
      seconds: before.seconds + repeated.seconds,
      processorSeconds: (before.processorSeconds ?? 0) + (repeated.processorSeconds ?? 0),
    };
    reports.set(step, report);
    onReport(report);
  };

  const queueOf = (kind: Step['kind']) => steps.filter((step) => step.kind === kind);
  const work = async (queue: Step[]) => {
    for (let step = queue.shift(); step; step = queue.shift()) await run(step);
  };
  const timed = queueOf('timed');
  const statics = queueOf('static');
  if (isCi) await Promise.all([work(statics), work(statics)]);
  const timedRun = Promise.all(Array.from({ length: TIMED_AT_ONCE }, () => work(timed)));
  await Promise.all([
    inBackground(() => work(statics)),
    timedRun.then(() => inBackground(() => work(statics))),
  ]);
  for (const step of queueOf('timed')) await repeat(step);
  await work(queueOf('alone'));

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
  const { result, processorSeconds } = await measured(() =>
    run().catch(
      (error: unknown): StepResult => ({
        passed: 0,
        failed: 1,
        output: error instanceof Error ? (error.stack ?? error.message) : String(error),
      }),
    ),
  );
  const seconds = (performance.now() - start) / 1_000;
  return { ...result, name: step.name, seconds, processorSeconds, outcome: outcomeOf(result) };
}

function outcomeOf({ failed, notRun }: StepResult): StepReport['outcome'] {
  if (failed > 0) return 'failed';
  return notRun ? 'not run' : 'ok';
}
