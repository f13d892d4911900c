import { afterAll, beforeAll, describe, it } from 'vitest';
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

const SETUP_MS = 60_000;
const TEST_MS = 90_000;

/**
 * Registers the whole suite with vitest. A case that does not apply is a skipped test with its reason; one that is
 * untested, because the harness lacks a hook, is a failed one.
 *
 * @example
 * ```ts
 * import harness from './harness.ts';
 * testLockConformance(harness);
 * ```
 */
export function testLockConformance(harness: Harness, options: BindingOptions = {}): void {
  const seed = options.seed ?? freshSeed();
  const results: CaseResult[] = [];
  const title = harness.name ?? 'lock';
  describe(`${title} conforms (seed ${seed})`, () => {
    let started: { teardown(): Promise<void> } | undefined;
    beforeAll(async () => {
      started = await startHarness(harness);
    }, SETUP_MS);
    afterAll(async () => {
      writeReport(
        await reportOf(harness, results, seed, 'vitest'),
        options.reportDirectory ?? 'conformance-report',
      );
      await started?.teardown();
    }, SETUP_MS);
    for (const group of GROUPS) {
      const cases = conformanceCases.filter(({ id, alone }) => id.startsWith(`${group}/`) && !alone);
      if (cases.length > 0) describe.concurrent(group, () => register(cases, harness, seed, results));
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
    it(`${testCase.title} (${testCase.id}, ${testCase.clause})`, { timeout: TEST_MS }, async ({ skip }) => {
      const result = await runCase(testCase, harness, seed);
      results.push(result);
      if (result.outcome === 'failed') throw result.error;
      if (result.outcome === 'untested') throw new Error(`untested: ${result.reason}`);
      if (result.outcome !== 'passed') skip(`${result.outcome}: ${result.reason}`);
    });
  }
}
