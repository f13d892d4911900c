/** The module of a renewal thread, and of the process that has it: makes the backend of the harness that the environment names. */
import type { LockBackend } from '@locks/core/backend';
import { type Harness, harnessIn } from '@locks/core/conformance';
import { harnessUrl } from '../src/harness-names.ts';

export default async function makeBackend(): Promise<LockBackend> {
  const name = process.env['LOCKS_BLOCKS_HARNESS'] as string;
  const harness = harnessIn((await import(harnessUrl(name).href)) as object) as Harness;
  return harness.createBackend();
}
