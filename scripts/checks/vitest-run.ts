// Own code: a run of vitest for each step, since one run of all `projects` would have no lanes, times and servers of each.
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand } from './command.ts';
import {
  chanceFailures,
  type Failure,
  failedTests,
  patternOf,
  selectionOf,
  type TestFile,
} from './repeat.ts';
import type { StepFailure, StepResult } from './step.ts';

interface VitestReport {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly testResults: readonly TestFile[];
}

interface VitestRun {
  readonly folder: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

/** The suite on all backends takes minutes; on a busy machine many. */
const RUN_MS = 1_800_000;

/** How often in a row a failed test must pass alone. A file whose process ended runs once. */
const TIMES = { test: 3, file: 1 };

/** Runs the tests of a folder with vitest and counts them. */
export async function runVitest(
  folder: string,
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
): Promise<StepResult> {
  const run = { folder, args, env };
  const { ok, output, report } = await runOnce(run);
  if (!report) return { passed: 0, failed: 1, output };
  // A file that cannot be loaded, or an unhandled rejection, fails the run without a failed test.
  const failed = ok ? report.numFailedTests : Math.max(1, report.numFailedTests);
  const { numPassedTests: passed, numPendingTests: skipped } = report;
  const result = { passed, failed, skipped, output, failures: ok ? [] : failuresOf(report, output) };
  const failures = failed > 0 ? chanceFailures(report.testResults, output) : [];
  return failures.length === 0 ? result : { ...result, again: () => repeat(run, result, failures) };
}

/** The result when what failed is repeated alone: still a failure unless all passes each time. */
async function repeat(run: VitestRun, before: StepResult, failures: readonly Failure[]): Promise<StepResult> {
  const args = [...run.args, ...selectionOf(failures)];
  const times = failures.every(({ title }) => title === undefined) ? TIMES.file : TIMES.test;
  let passed = 0;
  for (let round = 1; round <= times; round += 1) {
    const { ok, output, report } = await runOnce({ ...run, args });
    passed = report?.numPassedTests ?? 0;
    // A selection that finds nothing passes as well.
    if (ok && passed >= failures.length) continue;
    const again = report ? failuresOf(report, output) : [];
    const all = [...(before.failures ?? []), ...again.map((one) => ({ ...one, says: `again: ${one.says}` }))];
    return { ...before, failures: all, output: `repeated alone, and failed again:\n${output}` };
  }
  const onlyAlone = failures.map(({ summary }) => summary);
  return { passed: before.passed + passed, failed: 0, skipped: before.skipped ?? 0, output: '', onlyAlone };
}

/** The failed tests; where none failed, the errors of hooks and those that no test caught, with their file. */
function failuresOf({ testResults }: VitestReport, output: string): StepFailure[] {
  const tests = testResults.flatMap(failedTests);
  if (tests.length > 0)
    return tests.map(({ path, summary }) => ({ says: summary, repeat: ['-t', `^${patternOf(path)}$`] }));
  const lines = output.match(
    /^ *( FAIL |⎯+ Unhandled|\w*Error: |This error originated|Serialized Error|Error: |❯ ).*$/gm,
  );
  return (lines ?? []).slice(0, 12).map((says) => ({ says }));
}

async function runOnce({ folder, args, env }: VitestRun): Promise<{
  readonly ok: boolean;
  readonly output: string;
  readonly report: VitestReport | undefined;
}> {
  const reportFile = join(mkdtempSync(join(tmpdir(), 'vitest-')), 'report.json');
  const { ok, output } = await runCommand(
    'vitest',
    [
      'run',
      '--root',
      folder,
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${reportFile}`,
      ...args,
    ],
    { cwd: folder, env: { ...process.env, ...env }, limitMs: RUN_MS },
  );
  return { ok, output, report: readReport(reportFile) };
}

function readReport(file: string): VitestReport | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as VitestReport;
  } catch {
    return undefined;
  }
}
