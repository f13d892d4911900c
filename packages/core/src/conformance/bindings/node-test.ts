import { after, before, describe, it } from 'node:test';
import { type ConformanceCase, GROUPS } from '../case.ts';
import { conformanceCases } from '../cases/index.ts';
import type { Harness } from '../harness.ts';
import { type BindingOptions, SuiteTest } from './suite-test.ts';

export type { BindingOptions } from './suite-test.ts';

/**
 * Registers the whole suite with `node:test`. A case that does not apply is a skipped test with its reason; one that is
 * untested, because the harness lacks a hook, is a failed one.
 */
export function testLockConformance(harness: Harness, options: BindingOptions = {}): void {
  const suite = new SuiteTest(harness, options);
  describe(suite.title, () => {
    before(() => suite.start());
    after(() => suite.end('node:test'));
    for (const group of GROUPS) {
      const cases = conformanceCases.filter(({ id, alone }) => id.startsWith(`${group}/`) && !alone);
      if (cases.length > 0) describe(group, { concurrency: 8 }, () => register(cases, suite));
    }
    // After the others, which these would disturb.
    const alone = conformanceCases.filter((testCase) => testCase.alone);
    describe('alone', () => register(alone, suite));
  });
}

function register(cases: readonly ConformanceCase[], suite: SuiteTest): void {
  for (const testCase of cases) {
    it(suite.titleOf(testCase), (context) => suite.run(testCase, (reason) => context.skip(reason)));
  }
}
