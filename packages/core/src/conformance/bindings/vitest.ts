import { afterAll, beforeAll, describe, it } from 'vitest';
import { type ConformanceCase, GROUPS } from '../case.ts';
import { conformanceCases } from '../cases/index.ts';
import type { Harness } from '../harness.ts';
import { type BindingOptions, SuiteTest } from './suite-test.ts';

export type { BindingOptions } from './suite-test.ts';

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
  const suite = new SuiteTest(harness, options);
  describe(suite.title, () => {
    beforeAll(() => suite.start(), SETUP_MS);
    afterAll(() => suite.end('vitest'), SETUP_MS);
    for (const group of GROUPS) {
      const cases = conformanceCases.filter(({ id, alone }) => id.startsWith(`${group}/`) && !alone);
      if (cases.length > 0) describe.concurrent(group, () => register(cases, suite));
    }
    // After the others, which these would disturb.
    const alone = conformanceCases.filter((testCase) => testCase.alone);
    describe('alone', () => register(alone, suite));
  });
}

function register(cases: readonly ConformanceCase[], suite: SuiteTest): void {
  for (const testCase of cases) {
    it(suite.titleOf(testCase), { timeout: TEST_MS }, ({ skip }) =>
      suite.run(testCase, (reason) => skip(reason)),
    );
  }
}
