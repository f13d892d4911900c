/**
 * Thousands of leases of one process that are released in one iteration of the event loop: run by `many-releases.test.ts`, in a
 * process of its own, which reaches the store without the proxies of the suite. Prints JSON.
 *
 * Arguments: the name of a harness, whose store was set up already; the number of names; the number of readers.
 */
import { createLocks, type Lease } from '@locks/core';
import type { Harness } from '@locks/core/conformance';

export interface Releases {
  /** How many releases of distinct names, and of readers of one name, were rejected, and why the first of them was. */
  readonly failed: number;
  readonly firstFailure: string | undefined;
  /** The names that were still held afterwards. */
  readonly left: number;
}

const LONG_MS = 120_000;

const [harnessName = '', names, readers] = process.argv.slice(2);
const { default: harness } = (await import(`../src/harnesses/${harnessName}.ts`)) as { default: Harness };
const locks = createLocks(await harness.createBackend(), { ttlMs: LONG_MS, waitMs: LONG_MS });
const failures: string[] = [];

async function releaseTogether(leases: readonly Lease[]): Promise<void> {
  for (const end of await Promise.allSettled(leases.map((lease) => lease.release())))
    if (end.status === 'rejected') failures.push(String(end.reason));
}

await releaseTogether(
  await Promise.all(
    Array.from({ length: Number(names) }, (_, index) => locks.lock(`name ${index}`).acquire()),
  ),
);
let left = 0;
if (locks.capabilities.features.includes('list')) {
  for await (const { name } of locks.list()) if (name.startsWith('name ')) left += 1;
} else {
  for (let index = 0; index < Number(names); index += 1)
    if ((await locks.lock(`name ${index}`).tryAcquire()) === undefined) left += 1;
}

const { read, write } = locks.readWriteLock('readers');
const reading = await Promise.all(Array.from({ length: Number(readers) }, () => read.acquire()));
const writing = write.acquire();
await releaseTogether(reading);
// Nobody is left among the readers: the writer enters.
await (await writing).release();
await locks.close();

const [firstFailure] = failures;
console.log(JSON.stringify({ failed: failures.length, firstFailure, left } satisfies Releases));
process.exit();
