import { createLocks, type Lease } from '@locks/core';
import { expect, it, onTestFinished } from 'vitest';
import { freshPrefix, open, openPool, useServer } from './fixture.ts';

useServer();

function locksOn(connectionLimit: number) {
  const pool = openPool({ connectionLimit });
  const locks = createLocks(open({ tablePrefix: freshPrefix(), pool }), { ttlMs: 120_000, waitMs: 120_000 });
  onTestFinished(() => locks.close());
  return locks;
}

/** Releases all in one turn of the event loop. */
async function releaseAll(leases: readonly Lease[]): Promise<void> {
  const released = await Promise.allSettled(leases.map((lease) => lease.release()));
  expect(released.filter(({ status }) => status === 'rejected')).toEqual([]);
}

it('thousands of names that are released in one turn are all released', { timeout: 120_000 }, async () => {
  const locks = locksOn(8);
  const names = Array.from({ length: 4_000 }, (_, index) => `name ${index}`);
  await releaseAll(await Promise.all(names.map((name) => locks.lock(name).acquire())));
  for await (const { resource } of locks.list()) expect.fail(`${resource} is held`);
});

it.each([3_000, 10_000])(
  '%i readers of one name that are released in one turn are all released, and the writer behind them enters',
  { timeout: 120_000 },
  async (count) => {
    const { read, write } = locksOn(4).readWriteLock('a');
    const readers = Array.from({ length: count }, () => read.acquire());
    const leases = await Promise.all(readers);
    const writer = write.acquire();
    await releaseAll(leases);
    await (await writer).release();
  },
);
