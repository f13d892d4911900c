import { after, before, describe, it } from 'node:test';
import { type ConformanceCase, GROUPS } from '../case.ts';
import { conformanceCases } from '../cases/index.ts';
import type { Harness } from '../harness.ts';
import type { CaseResult } from '../outcome.ts';
import { runCase } from '../run-case.ts';
import { freshSeed, reportOf, startHarness } from '../run-suite.ts';
import { writeReport } from './report-file.ts';

export interface BindingOptions {
  /** Where the JSON report goes. @defaultValue 'conformance-report' */
  readonly reportDirectory?: string;
  /** @defaultValue a random one, printed with every failure */
  readonly seed?: number;
}

/**
 * Registers the whole suite with `node:test`. A case that does not apply is a skipped test with its reason; one that is
 * untested, because the harness lacks a hook, is a failed one.
 */
export function testLockConformance(harness: Harness, options: BindingOptions = {}): void {
  const seed = options.seed ?? freshSeed();
  const results: CaseResult[] = [];
  describe(`${harness.name ?? 'lock'} conforms (seed ${seed})`, () => {
    let started: { teardown(): Promise<void> } | undefined;
    before(async () => {
      started = await startHarness(harness);
    });
    after(async () => {
      writeReport(
        await reportOf(harness, results, seed, 'node:test'),
        options.reportDirectory ?? 'conformance-report',
      );
      await started?.teardown();
    });
    for (const group of GROUPS) {
      const cases = conformanceCases.filter(({ id, alone }) => id.startsWith(`${group}/`) && !alone);
      if (cases.length > 0)
        describe(group, { concurrency: 8 }, () => register(cases, harness, seed, results));
    }
    // After the others, which these would disturb.
    const alone = conformanceCases.filter((testCase) => testCase.alone);
    describe('alone', () => register(alone, harness, seed, results));
  });
}

function register(
  cases: readonly ConformanceCase[],
  harness: Harness,
  seed: number,
  results: CaseResult[],
): void {
  for (const testCase of cases) {
    it(`${testCase.title} (${testCase.id}, ${testCase.clause})`, async (context) => {
      const result = await runCase(testCase, harness, seed);
      results.push(result);
      if (result.outcome === 'failed') throw result.error;
      if (result.outcome === 'untested') throw new Error(`untested: ${result.reason}`);
      if (result.outcome !== 'passed') context.skip(`${result.outcome}: ${result.reason}`);
    });
  }
}
