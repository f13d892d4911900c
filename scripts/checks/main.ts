import { constants } from 'node:os';
import { changedPackages, stepsOf } from './changed.ts';
import { keep } from './durations.ts';
import { plans, steps } from './plan.ts';
import { watchStolen } from './processor-time.ts';
import { Progress } from './progress.ts';
import { runSteps, TIMED_AT_ONCE } from './run-steps.ts';
import { installServers, missingServers, serversFor, serverStep } from './step-servers.ts';
import type { Step, StepReport } from './step.ts';
import { buildStep } from './steps/source.ts';
import { describe, summarise } from './summary.ts';

const [given, testArguments] = splitArguments(process.argv.slice(2));

if (given.includes('--list')) {
  for (const step of steps) {
    const command = plans[''].includes(step)
      ? 'test'
      : plans['--all'].includes(step)
        ? 'test:all'
        : 'by name';
    console.log(`${step.name.padEnd(24)} ${command.padEnd(8)} ${step.about}`);
  }
} else {
  const isOfAChange = given.length === 1 && given[0] === '--changed';
  const selected = isOfAChange ? stepsOf(await changedPackages(), plans['--changed']) : select(given);
  // What a change needs is green each time: no second chance for its tests. CI runs all in two commands, and repeats as `--all` does.
  const repeats = given.includes('--all') || given.includes('--rest') || process.env['LOCKS_REPEAT'] === '1';
  if (selected) process.exitCode = await check(selected, repeats);
}

async function check(selected: readonly Step[], repeats: boolean): Promise<number> {
  const start = performance.now();
  const stolen = watchStolen();
  const servers = serversFor(selected);
  const first = selected.some((step) => step.name !== 'format') ? [buildStep] : [];
  const progress = new Progress([...servers.map(serverStep), ...first, ...selected], TIMED_AT_ONCE);
  const reports = new Map<string, StepReport>();
  const events = {
    started: (step: Pick<Step, 'name'>) => progress.started(step),
    ended(report: StepReport) {
      reports.set(report.name, report);
      progress.ended(report, describe(report));
    },
  };
  const finish = (): void => {
    keep([...reports.values()]);
    const inOrder = [...servers.map(serverStep), ...first, ...selected].flatMap(
      ({ name }) => reports.get(name) ?? [],
    );
    const seconds = (performance.now() - start) / 1_000;
    console.log(summarise(inOrder, seconds, stolen(), progress.unfinished()));
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    // The children get the same signal, and the launcher ends what does not heed it.
    process.once(signal, () => {
      console.log(`\nstopped by ${signal}`);
      finish();
      process.exit(128 + constants.signals[signal]);
    });
  }

  const context = { missing: missingServers(await installServers(servers, events)), testArguments, repeats };
  await runSteps(first, context, events);
  await runSteps(selected, context, events);
  finish();
  return [...reports.values()].some((report) => report.failed > 0) ? 1 : 0;
}

/** The steps that are asked for; `undefined`, after a message to the user, where that cannot be understood. */
function select(wanted: readonly string[]): readonly Step[] | undefined {
  const [only = ''] = wanted;
  if (wanted.length <= 1 && Object.hasOwn(plans, only)) return plans[only as keyof typeof plans];
  const matches = (name: string, step: Step) => step.name === name || step.name.startsWith(`${name}:`);
  const unknown = wanted.filter((name) => name !== 'build' && !steps.some((step) => matches(name, step)));
  if (unknown.length > 0) {
    const options = unknown.some((name) => Object.hasOwn(plans, name)) ? ', and an option stands alone' : '';
    console.error(`no such step: ${unknown.join(', ')}; \`npm test -- --list\` shows all${options}`);
    process.exitCode = 2;
    return undefined;
  }
  return steps.filter((step) =>
    wanted.some((name) => step.name === name || (matches(name, step) && !step.onlyWhenNamed)),
  );
}

function splitArguments(args: readonly string[]): [names: string[], testArguments: string[]] {
  const end = args.indexOf('--');
  return end < 0 ? [[...args], []] : [args.slice(0, end), args.slice(end + 1)];
}
