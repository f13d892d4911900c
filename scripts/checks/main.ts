import { steps } from './plan.ts';
import { runSteps } from './run-steps.ts';
import { installServers, missingServers } from './servers.ts';
import type { Step, StepReport } from './step.ts';
import { buildStep } from './steps/build.ts';
import { describe, summarise } from './summary.ts';

const [names, testArguments] = splitArguments(process.argv.slice(2));

if (names.includes('--list')) {
  for (const { name, about } of steps) console.log(`${name.padEnd(22)} ${about}`);
} else {
  const selected = select(names);
  if (selected) process.exitCode = await check(selected);
}

async function check(selected: readonly Step[]): Promise<number> {
  let stopped = false;
  // The children were sent the same signal; what they end with is still reported.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => (stopped = true));

  const start = performance.now();
  const tell = (report: StepReport) => console.log(describe(report));
  const servers = await installServers(selected);
  servers.forEach(tell);

  const context = { missing: missingServers(servers), testArguments };
  const needBuild = selected.some((step) => !['format', 'lint'].includes(step.name));
  const built = needBuild ? await runSteps([buildStep], context, tell, () => stopped) : [];
  const reports = [...servers, ...built, ...(await runSteps(selected, context, tell, () => stopped))];
  console.log(summarise(reports, (performance.now() - start) / 1_000));
  return stopped || reports.some((report) => report.failed > 0) ? 1 : 0;
}

/** The steps of these names or groups, all without names; `undefined` (and a word to the user) if there is no such. */
function select(wanted: readonly string[]): Step[] | undefined {
  const matches = (name: string, step: Step) => step.name === name || step.name.startsWith(`${name}:`);
  const unknown = wanted.filter((name) => name !== 'build' && !steps.some((step) => matches(name, step)));
  if (unknown.length > 0) {
    console.error(`no such step: ${unknown.join(', ')}; \`npm test -- --list\` shows all`);
    process.exitCode = 2;
    return undefined;
  }
  return steps.filter((step) => wanted.length === 0 || wanted.some((name) => matches(name, step)));
}

function splitArguments(args: readonly string[]): [names: string[], testArguments: string[]] {
  const end = args.indexOf('--');
  return end < 0 ? [[...args], []] : [args.slice(0, end), args.slice(end + 1)];
}
