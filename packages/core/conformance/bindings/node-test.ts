import { after, before, describe, it } from 'node:test';
import type { ConformanceCase } from '../case.ts';
import { conformanceCases } from '../cases/index.ts';
import type { Harness } from '../harness.ts';
import { warnIfKeptOpen } from '../kept-open.ts';
import { partsOf } from '../run-suite.ts';
import { type BindingOptions, SuiteTest } from './suite-test.ts';

export type { BindingOptions } from './suite-test.ts';

/**
 * Registers the whole suite with `node:test`. A case that does not apply becomes a skipped test with its reason; a case
 * that is untested, because the harness lacks a hook, becomes a failed test.
 */
export function testLockConformance(harness: Harness, options?: BindingOptions): void {
  const suite = new SuiteTest(harness, options);
  describe(suite.title, () => {
    before(() => suite.start());
    after(async () => {
      await suite.end('node:test');
      warnIfKeptOpen();
    });
    // The groups are no suites of their own: node:test would run them one after the other.
    for (const [part, concurrency] of partsOf(conformanceCases, 8)) {
      const title = part[0]?.first ? 'first of all' : concurrency > 1 ? 'side by side' : 'alone';
      describe(title, { concurrency }, () => register(part, suite));
    }
  });
}

function register(cases: readonly ConformanceCase[], suite: SuiteTest): void {
  for (const testCase of cases) {
    it(suite.titleOf(testCase), (context) => suite.run(testCase, (reason) => context.skip(reason)));
  }
}
