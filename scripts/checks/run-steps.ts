// Own code: turbo orders by what depends on what. It knows no step that must run alone, and none that takes only idle processor time.
import { inBackground, problemOf } from './command.ts';
import { longestFirst } from './durations.ts';
import { measured } from './processor-time.ts';
import type { Step, StepContext, StepEvents, StepReport, StepResult } from './step.ts';

export const TIMED_AT_ONCE = 3;

/**
 * Runs all steps, whatever fails: the timed ones, then those that run alone, one by one; and in the pauses of both the static ones, one
 * beside the timed ones and two after them. What may have failed by chance is repeated where that is wanted: a step that runs alone at
 * once, since a later one may read what it reports, and a timed one when nothing else runs.
 */
export async function runSteps(
  steps: readonly Step[],
  context: StepContext,
  events: StepEvents,
): Promise<void> {
  const reports = new Map<Step, StepReport>();
  const run = async (step: Step) => {
    events.started(step);
    const report = await runStep(step, context);
    reports.set(step, report);
    events.ended(report);
    if (step.kind === 'alone') await repeat(step);
  };
  const repeat = async (step: Step) => {
    const before = reports.get(step);
    if (!before?.again) return;
    events.started(step);
    const repeated = await reportOf(step, before.again);
    const report = {
      ...repeated,
      seconds: before.seconds + repeated.seconds,
      processorSeconds: (before.processorSeconds ?? 0) + (repeated.processorSeconds ?? 0),
    };
    events.ended(report);
  };

  const queueOf = (kind: Step['kind']) => steps.filter((step) => step.kind === kind);
  const work = async (queue: Step[]) => {
    for (let step = queue.shift(); step; step = queue.shift()) await run(step);
  };
  const timed = longestFirst(queueOf('timed'));
  const statics = longestFirst(queueOf('static'));
  let othersRun = steps.some(({ kind }) => kind !== 'static');
  const inPauses = () =>
    inBackground(
      () => work(statics),
      () => othersRun,
    );
  const inFirstPauses = inPauses();
  await Promise.all(Array.from({ length: TIMED_AT_ONCE }, () => work(timed)));
  const inLaterPauses = inPauses();
  await work(queueOf('alone'));
  othersRun = false;
  await Promise.all([inFirstPauses, inLaterPauses]);
  for (const step of queueOf('timed')) await repeat(step);
}

async function runStep(step: Step, context: StepContext): Promise<StepReport> {
  const missing = (step.needs ?? []).filter((server) => context.missing.has(server));
  if (missing.length > 0) {
    const output = `needs a server that is missing here: ${missing.join(', ')}`;
    return { name: step.name, seconds: 0, outcome: 'not run', passed: 0, failed: 0, output };
  }
  const { again, ...report } = await reportOf(step, async () => {
    const absent = step.installs && (await problemOf('node', ['test-servers/install.mjs', step.installs]));
    return absent ? { passed: 0, failed: 0, output: absent, notRun: true } : step.run(context);
  });
  return context.repeats && again ? { ...report, again } : report;
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
