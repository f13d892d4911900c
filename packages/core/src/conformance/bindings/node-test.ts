import { after, before, describe, it } from 'node:test';
import type { ConformanceCase } from '../case.ts';
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
    const others = conformanceCases.filter(({ alone }) => !alone);
    // Not a suite for each group: node:test would run them one after the other.
    describe('side by side', { concurrency: 8 }, () => register(others, suite));
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
