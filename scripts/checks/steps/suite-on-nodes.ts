import { join } from 'node:path';
import { runCommand } from '../command.ts';
import { consumerFolder } from '../consumer-folder.ts';
import type { NodeVersion } from '../nodes.ts';
import { nodesOfUsers } from '../nodes.ts';
import type { Step, StepResult } from '../step.ts';

/** The conformance suite as a third party runs it: from the registry's packages, with `node --test`, on every Node. */
export const suiteOnNodesStep: Step = {
  name: 'suite-on-nodes',
  about: 'the conformance suite of the packed packages through node:test on Node 20, 22, 24 and 26',
  // The cases judge time.
  kind: 'alone',
  async run() {
    const folder = await consumerFolder();
    const nodes = onePerMajor(await nodesOfUsers());
    // The suite is imported on every Node, and required on the oldest and the newest (consumers:run requires it on all).
    const planned = [
      ...nodes.map((node) => ({ node, file: 'suite.test.mjs' })),
      ...[nodes.at(0), nodes.at(-1)].flatMap((node) => (node ? [{ node, file: 'suite.test.cjs' }] : [])),
    ];
    // All run at once: the suite mostly waits.
    const runs = await Promise.all(planned.map(({ node, file }) => runSuite(node, folder, file)));
    const result = resultOfRuns(runs);
    const failed = planned.filter((_, index) => (runs[index] as Run).failed > 0);
    // Six suites share two cores: a suite that failed runs once more alone, but never where a lock was unsafe.
    if (failed.length === 0 || result.output.includes('SafetyViolation')) return result;
    return {
      ...result,
      async again() {
        const repeated = runs.filter((run) => run.failed === 0);
        for (const { node, file } of failed) repeated.push(await runSuite(node, folder, file));
        return { ...resultOfRuns(repeated), onlyAlone: runs.flatMap((run) => run.failing) };
      },
    };
  },
};

function resultOfRuns(runs: readonly Run[]): StepResult {
  return {
    passed: sum(runs.map((run) => run.passed)),
    failed: sum(runs.map((run) => run.failed)),
    skipped: sum(runs.map((run) => run.skipped)),
    output: runs.flatMap((run) => (run.failed > 0 ? [`${run.name}:\n${run.output}`] : [])).join('\n\n'),
    notes: runs.map(
      (run) => `${run.name}: ${run.passed} passed, ${run.failed} failed, ${run.skipped} skipped`,
    ),
  };
}

interface Run {
  readonly name: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** The titles of the cases that failed. */
  readonly failing: readonly string[];
  readonly output: string;
}

async function runSuite({ version, executable }: NodeVersion, folder: string, file: string): Promise<Run> {
  const args = ['--test', '--test-reporter=tap', join(folder, file)];
  const { ok, output } = await runCommand(executable, args, { cwd: folder, limitMs: 180_000 });
  const count = (what: string) => Number(new RegExp(`^# ${what} (\\d+)$`, 'm').exec(output)?.[1] ?? 0);
  const failed = count('fail') + count('cancelled');
  // A suite without cases, or a file that cannot be loaded, counts as a failure.
  const sound = ok && count('pass') > 0;
  return {
    name: `${file} on Node ${version}`,
    passed: count('pass'),
    failed: sound ? failed : Math.max(1, failed),
    skipped: count('skipped'),
    failing: [...output.matchAll(/^\s*not ok \d+ - (.*§.*)$/gm)].map(
      ([, title]) => `${file} on Node ${version}: ${title}`,
    ),
    output: output
      .split('\n')
      .filter((line) => !/^\s*(ok |# |duration_ms|type:|---|\.\.\.|1\.\.)/.test(line))
      .join('\n'),
  };
}

function onePerMajor(nodes: readonly NodeVersion[]): NodeVersion[] {
  const majorOf = ({ version }: NodeVersion) => version.split('.')[0];
  return nodes.filter(
    (node, index) => nodes.findIndex((other) => majorOf(other) === majorOf(node)) === index,
  );
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
