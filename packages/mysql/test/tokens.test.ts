import type { Grant, LockBackend } from '@locks/core/backend';
import { describe, expect, it } from 'vitest';
import { call, freshPrefix, open, openPool, request, sql, tableOf, take, useServer } from './fixture.ts';

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
    expect(await tableOf(tablePrefix).deleteIdle(0)).toBe(1);
    const second = await take(open({ tablePrefix }), request('a'));
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken as bigint);
    const other = await take(open({ tablePrefix }), request('b'));
    expect(other.fencingToken).toBeGreaterThan(first.fencingToken as bigint);
  });

  it('rise after the server lost its last grants, whichever statement grants', async () => {
    const tablePrefix = freshPrefix();
    const [holder, waiter] = [open({ tablePrefix }), open({ tablePrefix })];
    const waiting = request('a');
    const held = await take(holder, request('a'));
    expect(await waiter.attempt(waiting, true, call)).toEqual({ status: 'contended' });
    // As after a failover to a replica that does not have the grants of the last moments: they were given tokens up to now.
    const [row] = await sql(
      "SELECT CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) AS CHAR) AS now",
    );
    await holder.release(held, call);
    const attempt = await waiter.attempt(waiting, true, call);
    expect(attempt).toMatchObject({ status: 'granted' });
    expect((attempt as { grant: Grant }).grant.fencingToken).toBeGreaterThan(BigInt(row?.['now'] as string));
  });

  it('end where the next could not be told from the last, and the tokens of other names do not', async () => {
    const tablePrefix = freshPrefix();
    const [mine, other] = [open({ tablePrefix }), open({ tablePrefix })];
    const first = await take(mine, request('a'));
    await mine.release(first, call);
    const last = BigInt(Number.MAX_SAFE_INTEGER);
    await sql(`UPDATE locks.${tablePrefix}locks SET token = ${last - 1n}`);
    const held = await take(other, request('a'));
    expect(held.fencingToken).toBe(last);
    expect(await other.release(held, call)).toBe('released');
    for (const backend of [mine, other])
      await expect(backend.attempt(request('a'), true, call)).rejects.toMatchObject({ code: 'TOKENS_SPENT' });
    const many = [request('a'), request('b')];
    expect(await other.attemptMany?.(many, call)).toBeUndefined();
    await sql(`UPDATE locks.${tablePrefix}locks SET at = 1, free_at = 1`);
    await tableOf(tablePrefix).deleteIdle(0);
    expect((await take(mine, request('b'))).fencingToken).toBeLessThan(last / 2n);
    await sql(`UPDATE locks.${tablePrefix}locks SET token = 9223372036854775000 WHERE name = 'a'`);
    const failure = { code: 'MALFORMED_RECORD' };
    await expect(mine.attempt(request('a'), true, call)).rejects.toMatchObject(failure);
    await expect(mine.inspect('a', call)).rejects.toMatchObject(failure);
    // The floor from which the tokens of new rows rise.
    await sql(`UPDATE locks.${tablePrefix}meta SET value = ${last} WHERE item = 'token'`);
    await expect(mine.attempt(request('c'), true, call)).rejects.toMatchObject({ code: 'TOKENS_SPENT' });
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

/** From now on the waiter of `backend` lives in the tables only, for a minute: nobody serves it, or gives it up. */
async function keepAlive(tablePrefix: string, backend: LockBackend): Promise<void> {
  const clients = `locks.${tablePrefix}clients`;
  const [row] = await sql(`SELECT HEX(client) AS client FROM ${clients}`);
  await backend.close();
  await sql(
    `INSERT INTO ${clients} (client, seen_at) VALUES (X'${row?.['client']}', (UNIX_TIMESTAMP() + 60) * 1000000)`,
  );
}

describe('the sweep', () => {
  it('deletes rows that are idle and dead, and none that is held or waited for', async () => {
    const tablePrefix = freshPrefix();
    const backend = open({ tablePrefix });
    for (const name of ['idle', 'idle too']) await backend.release(await take(backend, request(name)), call);
    await take(backend, request('expired', { ttlMs: 50 }));
    await take(backend, request('held'));
    // Long enough for the waiters to come before its end, on connections that are made for them.
    const ttlMs = 2_000;
    const [dead, alive] = [open({ tablePrefix }), open({ tablePrefix })];
    for (const [name, waiter] of [
      ['left behind', dead],
      ['waited for', alive],
    ] as const) {
      await take(backend, request(name, { ttlMs }));
      expect(await waiter.attempt(request(name), true, call)).toEqual({ status: 'contended' });
      if (waiter === alive) await keepAlive(tablePrefix, alive);
      else await dead.close();
    }
    await new Promise((resolve) => setTimeout(resolve, ttlMs + 100));
    expect(await tableOf(tablePrefix).deleteIdle(0)).toBe(4);
    const rows = await sql(`SELECT CAST(name AS CHAR) AS name FROM locks.${tablePrefix}locks`);
    expect(rows).toEqual([{ name: 'held' }, { name: 'waited for' }]);
    expect((await backend.inspect('waited for', call)).waiters).toHaveLength(1);
    expect(await backend.inspect('left behind', call)).toMatchObject({ holders: [], waiters: [] });
  });
});
