import { watchMachine } from './machine.ts';
import { quickSteps, steps } from './plan.ts';
import { runSteps } from './run-steps.ts';
import { installServers, missingServers } from './servers.ts';
import type { Step, StepReport } from './step.ts';
import { buildStep } from './steps/turbo.ts';
import { describe, summarise } from './summary.ts';

const [names, testArguments] = splitArguments(process.argv.slice(2));

if (names.includes('--list')) {
  for (const { name, about } of steps) console.log(`${name.padEnd(22)} ${about}`);
} else {
  const selected = names.includes('--quick') ? quick(names) : select(names);
  if (selected) process.exitCode = await check(selected);
}

async function check(selected: readonly Step[]): Promise<number> {
  let stopped = false;
  // The children get the same signal; their results are still reported.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => (stopped = true));

  const start = performance.now();
  const endWatch = watchMachine();
  const show = (report: StepReport) => console.log(describe(report));
  const servers = await installServers(selected);
  servers.forEach(show);

  const context = { missing: missingServers(servers), testArguments };
  const needBuild = selected.some((step) => step.name !== 'format');
  const built = needBuild ? await runSteps([buildStep], context, show, () => stopped) : [];
  const reports = [...servers, ...built, ...(await runSteps(selected, context, show, () => stopped))];
  console.log(summarise(reports, (performance.now() - start) / 1_000, endWatch()));
  return stopped || reports.some((report) => report.failed > 0) ? 1 : 0;
}

/** The steps of `--quick`; `undefined`, after a message to the user, where steps are named as well. */
function quick(wanted: readonly string[]): readonly Step[] | undefined {
  if (wanted.length === 1) return quickSteps;
  console.error('--quick stands for its own steps: name steps without it, or give it alone');
  process.exitCode = 2;
  return undefined;
}

/** The steps of these names or groups, all without names; `undefined`, after a message to the user, where a name is unknown. */
function select(wanted: readonly string[]): Step[] | undefined {
  const matches = (name: string, step: Step) => step.name === name || step.name.startsWith(`${name}:`);
  const unknown = wanted.filter((name) => name !== 'build' && !steps.some((step) => matches(name, step)));
  if (unknown.length > 0) {
    console.error(`no such step: ${unknown.join(', ')}; \`npm test -- --list\` shows all`);
    process.exitCode = 2;
    return undefined;
  }
  if (wanted.length === 0) return steps.filter((step) => !step.onlyWhenNamed);
  return steps.filter((step) =>
    wanted.some((name) => step.name === name || (matches(name, step) && !step.onlyWhenNamed)),
  );
}

function splitArguments(args: readonly string[]): [names: string[], testArguments: string[]] {
  const end = args.indexOf('--');
  return end < 0 ? [[...args], []] : [args.slice(0, end), args.slice(end + 1)];
}
