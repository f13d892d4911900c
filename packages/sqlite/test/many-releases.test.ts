import { createLocks, type Lease } from '@locks/core';
import { expect, it, onTestFinished } from 'vitest';
import { open } from './fixture.ts';

const TIMEOUT_MS = 120_000;

function locksOnNewFile() {
  const locks = createLocks(open().backend, { ttlMs: TIMEOUT_MS, waitMs: TIMEOUT_MS });
  onTestFinished(() => locks.close());
  return locks;
}

/** Releases all in one turn of the event loop. */
async function releaseAll(leases: readonly Lease[]): Promise<void> {
  const released = await Promise.allSettled(leases.map((lease) => lease.release()));
  expect(released.filter(({ status }) => status === 'rejected')).toEqual([]);
}

it('thousands of names that are released in one turn are all released', { timeout: TIMEOUT_MS }, async () => {
  const locks = locksOnNewFile();
  const names = Array.from({ length: 10_000 }, (_, index) => `name ${index}`);
  await releaseAll(await Promise.all(names.map((name) => locks.lock(name).acquire())));
  for await (const { resource } of locks.list()) expect.fail(`${resource} is held`);
});

it.each([3_000, 10_000])(
  '%i readers of one name that are released in one turn are all released, and the writer behind them enters',
  { timeout: TIMEOUT_MS },
  async (count) => {
    const { read, write } = locksOnNewFile().readWriteLock('a');
    const leases = await Promise.all(Array.from({ length: count }, () => read.acquire()));
    const writer = write.acquire();
    await releaseAll(leases);
    await (await writer).release();
  },
);
