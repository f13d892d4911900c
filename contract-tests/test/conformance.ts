/** The test of one harness, for the files that `writeConformanceTests` writes. */
import { join } from 'node:path';
import type { Harness } from '@locks/core/conformance';
import { testLockConformance } from '@locks/core/conformance/vitest';
import { vi } from 'vitest';
import { casesAtOnce } from '../src/cases-at-once.ts';
import { fixtureNames } from '../src/harness-names.ts';
import { reportDirectory } from '../src/report-directory.ts';

export function testConformance(name: string, harness: Harness): void {
  const maxConcurrency = casesAtOnce[name];
  if (maxConcurrency !== undefined) vi.setConfig({ maxConcurrency });
  // The matrix shows the reports of backends only.
  const isFixture = fixtureNames.includes(name);
  testLockConformance(harness, {
    reportDirectory: isFixture ? join(reportDirectory, 'fixtures') : reportDirectory,
  });
}
