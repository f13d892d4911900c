import { createLocks, type Lease, type LockManager } from '@locks/core';
import type { Pool, PoolConnection } from 'mysql2';
import { describe, expect, it, onTestFinished } from 'vitest';
import { call, freshPrefix, openPool, open, request, take, until, useServer } from './fixture.ts';

useServer();

const MANY = 5_000;

function locksOn(pool: Pool): LockManager {
  const locks = createLocks(open({ tablePrefix: freshPrefix(), pool }));
  onTestFinished(() => locks.close());
  return locks;
}

/** Acquires of so many names, called in one turn. */
function acquireMany(locks: LockManager, signal?: AbortSignal): Promise<Lease>[] {
  const options = { waitMs: 60_000, ttlMs: 60_000, ...(signal && { signal }) };
  return Array.from({ length: MANY }, (_, at) => locks.lock(`many ${at}`).acquire(options));
}

/** All connections of a pool, as an application may have them. */
async function takeAll(pool: Pool, count: number): Promise<() => void> {
  const connections = await Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<PoolConnection>((resolve, reject) =>
          pool.getConnection((error, connection) => (error ? reject(error) : resolve(connection))),
        ),
    ),
  );
  return () => connections.forEach((connection) => connection.release());
}

describe('thousands of acquires that wait for a connection of the pool', { timeout: 90_000 }, () => {
  it('are given up together, and the next lock is taken at once', async () => {
    const pool = openPool({ connectionLimit: 2 });
    const locks = locksOn(pool);
    const held = await locks.lock('held').acquire({ ttlMs: 60_000 });
    const giveBack = await takeAll(pool, 2);
    const abort = new AbortController();
    const acquires = acquireMany(locks, abort.signal);
    abort.abort(new Error('enough'));
    const reasons = await Promise.allSettled(acquires);
    expect(reasons.every((one) => one.status === 'rejected' && one.reason === abort.signal.reason)).toBe(
      true,
    );
    giveBack();
    await held.release();
  });

  it('do not keep a release, a renewal or an abandon from its connection', async () => {
    const locks = locksOn(openPool({ connectionLimit: 2 }));
    const [released, renewed] = [await locks.lock('one').acquire(), await locks.lock('two').acquire()];
    let granted = 0;
    const leases = acquireMany(locks);
    for (const lease of leases) lease.then(() => (granted += 1)).catch(() => undefined);
    await until(() => granted > 0);
    await Promise.all([released.release(), renewed.renew()]);
    expect(granted).toBeLessThan(MANY / 2);
    await until(() => granted === MANY, 60_000);
  });

  it('do not keep back the release of a lock that one of them waits for', async () => {
    const pool = openPool({ connectionLimit: 1 });
    const locks = locksOn(pool);
    const held = await locks.lock('held').acquire();
    const giveBack = await takeAll(pool, 1);
    const before = acquireMany(locks);
    const next = locks.lock('held').acquire({ waitMs: 60_000 });
    let granted = 0;
    for (const lease of before) lease.then(() => (granted += 1)).catch(() => undefined);
    const release = held.release();
    giveBack();
    await release;
    expect(granted).toBeLessThan(MANY / 2);
    await (await next).release();
    await locks.close();
    await Promise.allSettled(before);
  });
});

describe('names that are to be taken at once, while the only connection is in use', () => {
  it.each(['abandoned', 'closed'] as const)('are not taken when they were %s meanwhile', async (how) => {
    const pool = openPool({ connectionLimit: 1 });
    const tablePrefix = freshPrefix();
    const backend = open({ tablePrefix, pool });
    await take(backend, request('warm'));
    const giveBack = await takeAll(pool, 1);
    const [a, b] = [request('a'), request('b')];
    const taking = backend.attemptMany?.([a, b], call);
    const ended = how === 'closed' ? [backend.close()] : [backend.abandon(a, call), backend.abandon(b, call)];
    giveBack();
    await expect(taking).resolves.toBeUndefined();
    await Promise.all(ended);
    const other = open({ tablePrefix, pool });
    for (const { resource } of [a, b]) expect((await other.inspect(resource, call)).holders).toEqual([]);
  });
});
