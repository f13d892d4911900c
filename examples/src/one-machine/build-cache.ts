/** Two terminals want the same build or the same installed packages: one makes them, and the other one waits for its result. */
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { FencedLockManager } from '@locks/core';

/** Gives the folder of `key` in the cache, which is whole. */
export async function fromCache(
  locks: FencedLockManager,
  cache: string,
  key: string,
  build: (folder: string, signal: AbortSignal) => Promise<void>,
): Promise<string> {
  const entry = join(cache, key);
  if (existsSync(entry)) return entry;
  return locks.lock(`cache/${key}`, { ttlMs: 10_000, waitMs: 600_000 }).run(async (lease) => {
    // Another terminal may have built it while this one waited.
    if (existsSync(entry)) return entry;
    const unfinished = join(cache, '.unfinished', key);
    await rm(unfinished, { recursive: true, force: true }); // what a killed build left
    // A build that stood still for too long goes on in a folder of its own.
    const folder = join(unfinished, String(lease.fencingToken));
    await mkdir(folder, { recursive: true });
    await build(folder, lease.signal);
    lease.assertValid();
    await rename(folder, entry);
    return entry;
  });
}
