/** The test of one harness, for the files that `writeConformanceTests` writes. */
import { join } from 'node:path';
import type { Harness } from '@locks/core/conformance';
import { testLockConformance } from '@locks/core/conformance/vitest';
import { vi } from 'vitest';
import { fixtureNames } from '../src/harness-names.ts';
import { reportDirectory } from '../src/report-directory.ts';

/** How many cases run at once where more would take too much CPU. */
const CASES_AT_ONCE: Readonly<Record<string, number>> = {
  // Every step of etcd and of its client costs more CPU than those of the other stores.
  etcd: 5,
  'etcd-cluster': 5,
  // Its server in Java costs more CPU than the others.
  mongodb: 6,
  // The client of MySQL costs more CPU than those of the other stores.
  mysql: 6,
  // Three servers share the machine with the clients.
  'zookeeper-ensemble': 6,
  // The more connections the native library opens at once, the more it forgets.
  'zookeeper-native': 6,
};

export function testConformance(name: string, harness: Harness): void {
  const maxConcurrency = CASES_AT_ONCE[name];
  if (maxConcurrency !== undefined) vi.setConfig({ maxConcurrency });
  // The matrix shows the reports of backends only.
  const isFixture = fixtureNames.includes(name);
  testLockConformance(harness, {
    reportDirectory: isFixture ? join(reportDirectory, 'fixtures') : reportDirectory,
  });
}
