import type { Lease, LockManager } from '@locks/core';
import { waitUntil } from '@locks/test-servers';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LeaseFixture } from './lease-fixture.ts';

let fixture: LeaseFixture;
beforeAll(async () => {
  fixture = await LeaseFixture.start();
});
afterAll(() => fixture[Symbol.asyncDispose]());

const MANY = 5_000;

/** Acquires that many names in one iteration of the event loop. */
function acquireMany(locks: LockManager, options: { signal?: AbortSignal; waitMs?: number } = {}) {
  return Array.from({ length: MANY }, (_, at) =>
    locks.lock(`many ${at}`).acquire({ waitMs: 60_000, ttlMs: 60_000, ...options }),
  );
}

/** Takes all connections of a pool, as an application may. Resolves to the function that returns them. */
async function takeAll(pool: pg.Pool): Promise<() => void> {
  const clients = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()));
  return () => clients.forEach((client) => client.release());
}

/** Resolves when the backend waits for a connection. */
async function untilAsking(pool: pg.Pool): Promise<void> {
  await waitUntil(async () => pool.waitingCount > 0, { what: 'the backend to ask for a connection' });
}

async function codes(results: Promise<unknown>[]): Promise<readonly string[]> {
  const outcomes = await Promise.allSettled(results);
  const each = outcomes.map((one) =>
    one.status === 'fulfilled' ? 'fulfilled' : String((one.reason as { code?: unknown }).code),
  );
  return [...new Set(each)];
}

describe('thousands of acquires that wait for a connection of the pool', { timeout: 60_000 }, () => {
  it.each([1, 10])('are given up together by an abort, with a pool of %i', async (max) => {
    const pool = fixture.pool({ max });
    const locks = fixture.locks({ schema: fixture.schema(), pool });
    await locks.lock('warm').run(() => undefined);
    const returnAll = await takeAll(pool);
    const abort = new AbortController();
    const acquires = acquireMany(locks, { signal: abort.signal });
    await untilAsking(pool);
    abort.abort(Object.assign(new Error('enough'), { code: 'ENOUGH' }));
    expect(await codes(acquires)).toEqual(['ENOUGH']);
    returnAll();
    await locks.lock('after').run(() => undefined);
    expect((await locks.inspect('many 7')).holders).toEqual([]);
  });

  it('are given up together by waitMs', async () => {
    const pool = fixture.pool({ max: 4 });
    const locks = fixture.locks({ schema: fixture.schema(), pool });
    await locks.lock('warm').run(() => undefined);
    const returnAll = await takeAll(pool);
    const acquires = acquireMany(locks, { waitMs: 400 });
    expect(await codes(acquires)).toEqual(['LOCK_BACKEND']);
    returnAll();
    await locks.lock('after').run(() => undefined);
  });

  it('are given up together by close()', async () => {
    const pool = fixture.pool({ max: 4 });
    const locks = fixture.locks({ schema: fixture.schema(), pool });
    await locks.lock('warm').run(() => undefined);
    const returnAll = await takeAll(pool);
    const acquires = acquireMany(locks);
    await untilAsking(pool);
    const closing = locks.close();
    expect(await codes(acquires)).toEqual(['LOCK_CLOSED']);
    returnAll();
    await closing;
  });

  it('are refused together by a pool that was ended', async () => {
    const pool = fixture.pool();
    const locks = fixture.locks({ schema: fixture.schema(), pool });
    await locks.lock('warm').run(() => undefined);
    await pool.end();
    expect(await codes(acquireMany(locks))).toEqual(['LOCK_CLOSED']);
  });

  it('do not keep a release, a renewal or an abandon from its connection', async () => {
    const pool = fixture.pool({ max: 2 });
    const locks = fixture.locks({ schema: fixture.schema(), pool });
    const [released, renewed] = [await locks.lock('one').acquire(), await locks.lock('two').acquire()];
    const other = fixture.locks({ schema: fixture.schema(), pool });
    const abort = new AbortController();
    let granted = 0;
    const leases: Promise<Lease>[] = acquireMany(locks);
    for (const lease of leases) void lease.then(() => (granted += 1));
    const aborted = other
      .lock('three')
      .acquire({ signal: abort.signal })
      .catch(() => undefined);
    await waitUntil(async () => granted > 0, { what: 'the first grant' });
    abort.abort();
    await Promise.all([released.release(), renewed.renew(), aborted]);
    expect(granted).toBeLessThan(MANY / 2);
    await Promise.all(leases);
  });

  it('share the pool with the application: it gets a connection after a few statements', async () => {
    const pool = fixture.pool({ max: 1 });
    const locks = fixture.locks({ schema: fixture.schema(), pool });
    await locks.lock('warm').run(() => undefined);
    let granted = 0;
    const leases: Promise<Lease>[] = acquireMany(locks);
    for (const lease of leases) void lease.then(() => (granted += 1));
    await waitUntil(async () => granted > 0, { what: 'the first grant' });
    const before = granted;
    await pool.query('SELECT 1');
    expect(granted - before).toBeLessThan(100);
    await Promise.all(leases);
  });
});

describe('acquires of one name that are called in one turn', { timeout: 60_000 }, () => {
  it('are served in the order of their calls', async () => {
    const locks = fixture.locks({ schema: fixture.schema() });
    const order: number[] = [];
    const all = Array.from({ length: 1_000 }, (_, at) => {
      const lock = at % 10 === 0 ? locks.readWriteLock('a').read : locks.lock('a');
      return lock.run(() => void order.push(at), { waitMs: 60_000 });
    });
    await Promise.all(all);
    expect(order).toEqual(all.map((_, at) => at));
  });

  it('are served in that order behind a holder too, and a try after them overtakes nobody', async () => {
    const locks = fixture.locks({ schema: fixture.schema() });
    const holder = await locks.lock('a').acquire();
    const order: number[] = [];
    const all = Array.from({ length: 300 }, (_, at) =>
      locks.lock('a').run(() => void order.push(at), { waitMs: 60_000 }),
    );
    const tried = locks.lock('a').tryAcquire();
    await holder.release();
    expect(await tried).toBeUndefined();
    await Promise.all(all);
    expect(order).toEqual(all.map((_, at) => at));
  });
});

describe('thousands of leases that are released in one turn', { timeout: 120_000 }, () => {
  const count = 10_000;

  it('of one name: all are answered, and nobody holds', async () => {
    const locks = fixture.locks({ schema: fixture.schema() }, { ttlMs: 60_000, waitMs: 60_000 });
    const acquires = Array.from({ length: count }, () => locks.readWriteLock('a').read.acquire());
    const leases = await Promise.all(acquires);
    expect(await codes(leases.map((lease) => lease.release()))).toEqual(['fulfilled']);
    expect((await locks.inspect('a')).holders).toEqual([]);
  });

  it('of a name each: all are answered, and nobody holds', async () => {
    const locks = fixture.locks({ schema: fixture.schema() }, { ttlMs: 60_000, waitMs: 60_000 });
    const acquires = Array.from({ length: count }, (_, at) => locks.lock(`a ${at}`).acquire());
    const leases = await Promise.all(acquires);
    expect(await codes(leases.map((lease) => lease.release()))).toEqual(['fulfilled']);
    for await (const { name } of locks.list('a ')) expect.fail(`${name} is in use`);
  });

  it('beside waiters of the same name that give up in that turn', async () => {
    const locks = fixture.locks({ schema: fixture.schema() }, { ttlMs: 60_000, waitMs: 60_000 });
    const { read, write } = locks.readWriteLock('a');
    const leases = await Promise.all(Array.from({ length: 2_000 }, () => read.acquire()));
    const abort = new AbortController();
    const waits = Array.from({ length: 2_000 }, () => write.acquire({ signal: abort.signal }));
    const ended = codes(waits);
    await waitUntil(async () => (await locks.inspect('a')).waiters.length === waits.length, {
      what: 'all waiters',
    });
    abort.abort(Object.assign(new Error('enough'), { code: 'ENOUGH' }));
    expect(await codes(leases.map((lease) => lease.release()))).toEqual(['fulfilled']);
    expect(await ended).toEqual(['ENOUGH']);
    await write.run(() => undefined);
  });
});
