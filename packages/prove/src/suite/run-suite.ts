import { existsSync } from 'node:fs';
import { type ConformanceReport, defineHarness, harnessIn, runConformance } from '@locks/core/conformance';
import type { SuiteProof } from '../proof.ts';
import type { StoreModule } from '../worker/worker-commands.ts';
import { MODULE_VARIABLE } from './suite-module.ts';

const SOURCE = new URL('main.ts', import.meta.url);
/** The module of the harness, which child processes of the suite load: beside this one in `src`, and in a folder in `dist`. */
const HARNESS = existsSync(SOURCE) ? SOURCE : new URL('suite/main.js', import.meta.url);

/**
 * Runs the conformance suite on what a module opens, without a test runner. A module with a harness of its own brings hooks that disturb
 * its store; without them the cases that need one are untested.
 */
export async function runSuite(store: StoreModule, seed: number): Promise<SuiteProof | undefined> {
  process.env[MODULE_VARIABLE] = JSON.stringify(store);
  const own = harnessIn((await import(store.module)) as object);
  const harness = own ?? harnessIn((await import(HARNESS.href)) as object);
  if (harness === undefined) return undefined;
  const defined = defineHarness(harness);
  const suiteSeed = seed % 2 ** 31;
  const once = await runConformance(defined, { seed: suiteSeed });
  const first = failedIn(once);
  // A case that fails only beside others fails for a busy machine.
  const failed =
    first.length === 0
      ? first
      : failedIn(
          await runConformance(defined, { seed: suiteSeed, concurrency: 1, only: first.map(({ id }) => id) }),
        );
  const untested = once.cases.filter(({ outcome }) => outcome !== 'passed' && outcome !== 'failed').length;
  return { passed: once.cases.length - untested - failed.length, failed, untested };
}

function failedIn({ cases }: ConformanceReport): SuiteProof['failed'] {
  return cases.flatMap(({ id, outcome, reason = '' }) => (outcome === 'failed' ? [{ id, reason }] : []));
}
