import { join } from 'node:path';
import { runCommand } from '../command.ts';
import { consumerFolder } from '../consumer-folder.ts';
import type { NodeVersion } from '../nodes.ts';
import { nodesOfUsers } from '../nodes.ts';
import type { Step } from '../step.ts';

/** The conformance suite as a third party runs it: from the registry's packages, with `node --test`, on every Node. */
export const suiteOnNodesStep: Step = {
  name: 'suite-on-nodes',
  about: 'the conformance suite of the packed packages through node:test on Node 20, 22, 24 and 26',
  // Its cases are about time.
  kind: 'alone',
  async run() {
    const folder = await consumerFolder();
    const nodes = onePerMajor(await nodesOfUsers());
    // Imported on every Node; required on the oldest and the newest (the step consumers:run requires it on all).
    const planned = [
      ...nodes.map((node) => ({ node, file: 'suite.test.mjs' })),
      ...[nodes.at(0), nodes.at(-1)].flatMap((node) => (node ? [{ node, file: 'suite.test.cjs' }] : [])),
    ];
    // All at once: the suite waits more than it works.
    const runs = await Promise.all(planned.map(({ node, file }) => runSuite(node, folder, file)));
    return {
      passed: sum(runs.map((run) => run.passed)),
      failed: sum(runs.map((run) => run.failed)),
      skipped: sum(runs.map((run) => run.skipped)),
      output: runs.flatMap((run) => (run.failed > 0 ? [`${run.name}:\n${run.output}`] : [])).join('\n\n'),
      notes: runs.map(
        (run) => `${run.name}: ${run.passed} passed, ${run.failed} failed, ${run.skipped} skipped`,
      ),
    };
  },
};

interface Run {
  readonly name: string;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  readonly output: string;
}

async function runSuite({ version, executable }: NodeVersion, folder: string, file: string): Promise<Run> {
  const args = ['--test', '--test-reporter=tap', join(folder, file)];
  const { ok, output } = await runCommand(executable, args, { cwd: folder, limitMs: 180_000 });
  const count = (what: string) => Number(new RegExp(`^# ${what} (\\d+)$`, 'm').exec(output)?.[1] ?? 0);
  const failed = count('fail') + count('cancelled');
  // A suite that registers nothing, or a file that cannot be loaded, is no success.
  const sound = ok && count('pass') > 0;
  return {
    name: `${file} on Node ${version}`,
    passed: count('pass'),
    failed: sound ? failed : Math.max(1, failed),
    skipped: count('skipped'),
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
