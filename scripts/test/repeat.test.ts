import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { runSteps } from '../checks/run-steps.ts';
import type { Step, StepReport } from '../checks/step.ts';
import { describe as describeReport, summarise } from '../checks/summary.ts';
import { runVitest } from '../checks/vitest-run.ts';

const folder = fileURLToPath(new URL('./fixtures/by-chance', import.meta.url));

interface Outcome extends StepReport {
  readonly reports: number;
  /** The first report. */
  readonly said: string;
}

/** The last report on a step whose tests fail in these ways. */
async function outcome(ways: readonly string[], repeats = true): Promise<Outcome> {
  const env = environment(...ways);
  const step: Step = {
    name: 'by-chance',
    about: '',
    kind: 'timed',
    run: () => runVitest(folder, [], env),
  };
  const reports: StepReport[] = [];
  const context = { missing: new Set<never>(), testArguments: [], repeats };
  await runSteps([step], context, { started: () => {}, ended: (report) => reports.push(report) });
  const [first, last] = [reports[0], reports.at(-1)] as [StepReport, StepReport];
  return { ...last, reports: reports.length, said: describeReport(first) };
}

/** The tests count in a folder of their own how often they ran. */
function environment(...ways: string[]): NodeJS.ProcessEnv {
  return { TURNS: join(mkdtempSync(join(tmpdir(), 'turns-')), 'turn'), WAYS: ways.join(',') };
}

describe.concurrent('a failed test', () => {
  it('is repeated alone, and named when it passes three times', async () => {
    const report = await outcome(['once']);
    expect(report).toMatchObject({ outcome: 'ok', passed: 2, failed: 0, reports: 2 });
    expect(report.onlyAlone).toEqual([expect.stringMatching(/fails once, ms \(1\+1\): AssertionError/)]);
    expect(report.said).toMatch(
      /^failed .*\n +⎯+ Failed Tests 1[^]*AssertionError[^]*\n {4}repeated alone later$/,
    );
    expect(summarise([report], 1, 0)).toMatch(/a bug to find:\n {2}by chance/);
  });

  it('is repeated with what it left behind', async () => {
    expect(await outcome(['aftermath'])).toMatchObject({ outcome: 'ok', passed: 2, failed: 0, reports: 2 });
  });

  it('is repeated with all of its file when its process ended', async () => {
    const report = await outcome(['killed']);
    expect(report).toMatchObject({ outcome: 'ok', passed: 2, failed: 0, reports: 2 });
    expect(report.onlyAlone).toEqual([expect.stringMatching(/sometimes\.test\.ts: .* signal SIGABRT/)]);
  });

  it('stays failed unless it passes each time', async () => {
    const report = await outcome(['third']);
    expect(report).toMatchObject({ outcome: 'failed', passed: 1, failed: 1, reports: 2 });
    expect(report.output).toContain('failed again');
    const summary = summarise([report], 1, 0);
    expect(summary).toMatch(
      /repeats it:\n {2}by-chance: .* fails in every third run: AssertionError.*\n {6}npm test -- by-chance -- -t '.*'\n {2}by-chance: again: /,
    );
  });

  it('is a failure at once where nothing is repeated, and told with the command that repeats it', async () => {
    const report = await outcome(['once'], false);
    expect(report).toMatchObject({ outcome: 'failed', passed: 1, failed: 1, reports: 1 });
    expect(report.said).not.toContain('repeated');
    const pattern = String.raw`^by chance \(as it happens\) > fails once, ms \(1\+1\)$`;
    expect(summarise([report], 1, 0)).toContain(`npm test -- by-chance -- -t '${pattern}'`);
    const again = await runVitest(folder, report.failures?.[0]?.repeat, environment('once'));
    expect(again).toMatchObject({ passed: 0, failed: 1 });
  });

  it.each([
    ['it saw a violation of safety', ['overlap']],
    ['so does another that saw a violation of safety', ['once', 'overlap']],
    ['it passed, and an error was caught by no test', ['unhandled']],
    ['there are many', ['many']],
  ])('is not repeated where %s', async (_, ways) => {
    const report = await outcome(ways);
    expect(report).toMatchObject({ outcome: 'failed', reports: 1 });
    const [told] = ways.includes('unhandled') ? ['nobody looks'] : ['by chance (as it happens)'];
    expect(summarise([report], 1, 0)).toContain(told);
  });

  it('is repeated by nobody when all pass', async () => {
    expect(await outcome([])).toMatchObject({ outcome: 'ok', passed: 1, reports: 1 });
  });
});
