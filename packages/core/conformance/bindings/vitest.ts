import { afterAll, beforeAll, describe, it } from 'vitest';
import { type ConformanceCase, GROUPS } from '../case.ts';
import { conformanceCases } from '../cases/index.ts';
import type { Harness } from '../harness.ts';
import { partsOf } from '../run-suite.ts';
import { type BindingOptions, SuiteTest } from './suite-test.ts';

export type { BindingOptions } from './suite-test.ts';

const SETUP_MS = 60_000;
const TEST_MS = 90_000;

// setup: import { testLockConformance } from '@locks/core/conformance/vitest';
// setup of harness.ts: import type { Harness } from '@locks/core/conformance'; declare const harness: Harness; export default harness;
/**
 * Registers the whole suite with vitest. A case that does not apply becomes a skipped test with its reason; a case that is
 * untested, because the harness lacks a hook, becomes a failed test.
 *
 * @example
 * ```ts
 * import harness from './harness.ts';
 * testLockConformance(harness);
 * ```
 */
export function testLockConformance(harness: Harness, options?: BindingOptions): void {
  const suite = new SuiteTest(harness, options);
  describe(suite.title, () => {
    beforeAll(() => suite.start(), SETUP_MS);
    afterAll(() => suite.end('vitest'), SETUP_MS);
    const [[first], [others], [alone]] = partsOf(conformanceCases, 8);
    // A sequential suite ends before the concurrent suites after it begin.
    describe('first of all', () => {
      describe.concurrent('side by side', () => register(first, suite));
    });
    for (const group of GROUPS) {
      const cases = others.filter(({ id }) => id.startsWith(`${group}/`));
      if (cases.length > 0) describe.concurrent(group, () => register(cases, suite));
    }
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
