import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand } from './command.ts';
import type { StepResult } from './step.ts';

interface VitestReport {
  readonly success: boolean;
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
}

/** Runs the tests of a folder with vitest and counts them. */
export async function runVitest(
  folder: string,
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
): Promise<StepResult> {
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
    { cwd: folder, env: { ...process.env, ...env } },
  );
  const report = readReport(reportFile);
  if (!report) return { passed: 0, failed: 1, output };
  // A file that cannot be loaded, or an unhandled rejection, fails the run without a failed test.
  const failed = ok ? report.numFailedTests : Math.max(1, report.numFailedTests);
  return { passed: report.numPassedTests, failed, skipped: report.numPendingTests, output };
}

function readReport(file: string): VitestReport | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as VitestReport;
  } catch {
    return undefined;
  }
}
