/** Two terminals want the same build or the same installed packages: one makes them, and the other one waits for its result. */
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { FencedLockManager } from '@locks/core';

/** Gives the folder of `key` in the cache, which is whole. */
export async function fromCache(
  locks: FencedLockManager,
  cache: string,
  key: string,
  build: (folder: string, signal: AbortSignal) => Promise<void>,
): Promise<string> {
  // One folder for each key, also for `@scope/name@1`.
  const name = encodeURIComponent(key);
  const entry = join(cache, name);
  if (existsSync(entry)) return entry;
  return locks.lock(`cache/${key}`, { ttlMs: 10_000, waitMs: 600_000 }).run(async (lease) => {
    // Another terminal may have built it while this one waited.
    if (existsSync(entry)) return entry;
    const unfinished = join(cache, '.unfinished', name);
    const folder = join(unfinished, String(lease.fencingToken));
    await mkdir(folder, { recursive: true });
    // Earlier builds were killed, or stood still for too long. What they left goes away in one step before it is deleted: such a one may go on
    // writing in it, but no longer moves it to its place.
    for (const each of await readdir(unfinished)) {
      if (!(Number.parseInt(each, 10) < lease.fencingToken)) continue;
      const left = join(unfinished, `${each}-`);
      await rename(join(unfinished, each), left)
        .then(() => rm(left, { recursive: true, force: true }))
        .catch(() => undefined);
    }
    await build(folder, lease.signal);
    lease.assertValid();
    await rename(folder, entry);
    return entry;
  });
}
