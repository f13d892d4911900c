import { existsSync } from 'node:fs';
import { defineHarness, harnessIn, runConformance } from '@locks/core/conformance';
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
  const { cases } = await runConformance(defineHarness(harness), { seed: seed % 2 ** 31 });
  const failed = cases.filter(({ outcome }) => outcome === 'failed');
  return {
    passed: cases.filter(({ outcome }) => outcome === 'passed').length,
    failed: failed.map(({ id, reason = '' }) => ({ id, reason })),
    untested: cases.length - failed.length - cases.filter(({ outcome }) => outcome === 'passed').length,
  };
}
