import { describe, expect, it } from 'vitest';
import { call, freshPrefix, open, openPool, request, sql, sweeperOf, take, useServer } from './fixture.ts';

useServer();

/** A session in which the server's clock is years ahead. */
const ahead = `SET timestamp = ${Math.floor(Date.now() / 1_000) + 100_000_000}`;

describe('fencing tokens', () => {
  it('rise after the row is swept away, even if the clock of the server went back meanwhile', async () => {
    const tablePrefix = freshPrefix();
    const early = open({ tablePrefix, pool: openPool({}, ahead) });
    const first = await take(early, request('a'));
    await early.release(first, call);
    expect(Number(first.fencingToken)).toBeGreaterThan((Date.now() + 90_000_000_000) * 1_000);
    // In the time of those who look at the row, it has been idle since long ago.
    await sql(`UPDATE locks.${tablePrefix}locks SET at = 1`);
    expect(await sweeperOf(tablePrefix).sweep(0)).toBe(1);
    const second = await take(open({ tablePrefix }), request('a'));
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken as bigint);
    const other = await take(open({ tablePrefix }), request('b'));
    expect(other.fencingToken).toBeGreaterThan(first.fencingToken as bigint);
  });

  it('rise after an administrator deleted the row, or dropped the tables', async () => {
    const tablePrefix = freshPrefix();
    const backend = open({ tablePrefix });
    const first = await take(backend, request('a'));
    await sql(`DELETE FROM locks.${tablePrefix}locks`);
    const second = await take(open({ tablePrefix }), request('a'));
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken as bigint);
    await sql(`DROP TABLE locks.${tablePrefix}locks, locks.${tablePrefix}meta, locks.${tablePrefix}clients`);
    const third = await take(open({ tablePrefix }), request('a'));
    expect(third.fencingToken).toBeGreaterThan(second.fencingToken as bigint);
  });
});

describe('the sweep', () => {
  it('deletes what is idle and dead, and nothing that is held or waited for', async () => {
    const tablePrefix = freshPrefix();
    const backend = open({ tablePrefix });
    for (const name of ['idle', 'idle too']) await backend.release(await take(backend, request(name)), call);
    await take(backend, request('expired', { ttlMs: 50 }));
    await take(backend, request('held'));
    const dead = open({ tablePrefix });
    await take(backend, request('left behind', { ttlMs: 300 }));
    await dead.attempt(request('left behind'), true, call);
    await dead.close();
    await new Promise((resolve) => setTimeout(resolve, 400));
    const alive = open({ tablePrefix });
    await take(backend, request('waited for', { ttlMs: 100 }));
    await alive.attempt(request('waited for'), true, call);
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(await sweeperOf(tablePrefix).sweep(0)).toBe(4);
    const rows = await sql(`SELECT CAST(name AS CHAR) AS name FROM locks.${tablePrefix}locks`);
    expect(rows).toEqual([{ name: 'held' }, { name: 'waited for' }]);
    expect((await backend.inspect('waited for', call)).waiters).toHaveLength(1);
    expect(await backend.inspect('left behind', call)).toMatchObject({ holders: [], waiters: [] });
  });
});
