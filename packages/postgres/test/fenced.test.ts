import { fileURLToPath } from 'node:url';
import { createLocks } from '@locks/core';
import { startProcess } from '@locks/core/conformance/process';
import { startPostgres } from '@locks/test-servers';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type FencedUpdate, fencedUpdate, postgresLeaseBackend, type SqlClient } from '../src/index.ts';
import type { LateWriter } from './fenced-late-writer.ts';

const LATE_WRITER = fileURLToPath(new URL('fenced-late-writer.ts', import.meta.url));

let server: Awaited<ReturnType<typeof startPostgres>>;
let pool: pg.Pool;

beforeAll(async () => {
  server = await startPostgres();
  pool = new pg.Pool({ connectionString: server.url });
  await pool.query(
    `CREATE TABLE stock (sku text PRIMARY KEY, writer text, quantity int, fencing_token bigint);
     CREATE SCHEMA "Odd ""schema";
     CREATE TABLE "Odd ""schema"."Odd table" ("a ""key" int, "b" int, v text, "Fence" bigint)`,
  );
});
afterAll(async () => {
  await pool.end();
  await server.stop();
});

async function row(sku: string): Promise<unknown> {
  return (await pool.query('SELECT writer, fencing_token FROM stock WHERE sku = $1', [sku])).rows[0];
}

const write = (sku: string, token: bigint, writer = `writer ${token}`): Promise<boolean> =>
  fencedUpdate(pool, { table: 'stock', key: { sku }, set: { writer }, token });

describe.concurrent('fencedUpdate', () => {
  it.each([
    ['fenced', 'successor'],
    ['plain', 'late'],
  ] as const)('a holder that was stopped past its ttl writes late, %s: %s', async (how, writer) => {
    const name = `sku of a late writer, ${how}`;
    await pool.query('INSERT INTO stock VALUES ($1)', [name]);
    await using locks = createLocks(postgresLeaseBackend(pool));
    await using late = await startProcess<LateWriter>(LATE_WRITER, [server.url, name]);
    late.freeze();
    const lease = await locks.lock(name).acquire({ waitMs: 10_000 });
    expect(await write(name, lease.fencingToken, 'successor')).toBe(true);
    const writing = late.call[how]();
    late.thaw();
    if (how === 'plain') await writing;
    else await expect(writing).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'taken-over' });
    expect(await row(name)).toMatchObject({ writer });
    await lease.release();
  });

  it('writes under the same token again and under a newer one, and never under an older one', async () => {
    await pool.query("INSERT INTO stock VALUES ('a')");
    expect(await write('a', 5n)).toBe(true);
    expect(await write('a', 5n, 'again')).toBe(true);
    expect(await write('a', 9_007_199_254_740_993n)).toBe(true);
    await expect(write('a', 9_007_199_254_740_992n)).rejects.toMatchObject({
      code: 'LOCK_LOST',
      reason: 'taken-over',
    });
    expect(await row('a')).toEqual({
      writer: 'writer 9007199254740993',
      fencing_token: '9007199254740993',
    });
  });

  it('reports when no row has the key', async () => {
    expect(await write('nowhere', 1n)).toBe(false);
  });

  it('compares with what a transaction has just committed, not with what it saw before', async () => {
    await pool.query("INSERT INTO stock VALUES ('raced', 'nobody', 0, 1)");
    const [newer, older] = [await pool.connect(), await pool.connect()];
    try {
      await newer.query('BEGIN');
      await older.query('BEGIN');
      const update = { table: 'stock', key: { sku: 'raced' } } as const;
      await fencedUpdate(newer, { ...update, set: { writer: 'newer' }, token: 3n });
      const late = fencedUpdate(older, { ...update, set: { writer: 'older' }, token: 2n });
      late.catch(() => undefined);
      await newer.query('COMMIT');
      await expect(late).rejects.toMatchObject({ code: 'LOCK_LOST' });
      await older.query('ROLLBACK');
      expect(await row('raced')).toEqual({ writer: 'newer', fencing_token: '3' });
    } finally {
      newer.release();
      older.release();
    }
  });

  it.each([
    ['an older token', '1'],
    ['the same token', '2'],
    ['no token', null],
  ])('writes a row that came in with %s after it was not found', async (_, token) => {
    const sku = `late with ${token}`;
    let statements = 0;
    const client = {
      query: async (text: string, values: unknown[]) => {
        const result = await pool.query(text, values);
        statements += 1;
        if (statements === 1)
          await pool.query('INSERT INTO stock VALUES ($1, $2, 0, $3)', [sku, 'other', token]);
        return result;
      },
    } as unknown as SqlClient;
    const update = { table: 'stock', key: { sku }, set: { writer: 'ours' }, token: 2n };
    expect(await fencedUpdate(client, update)).toBe(true);
    expect(await row(sku)).toEqual({ writer: 'ours', fencing_token: '2' });
  });

  it('reports that nothing was written where a trigger prevents it, which is no loss', async () => {
    await pool.query(
      `CREATE TABLE guarded (sku text PRIMARY KEY, writer text, fencing_token bigint);
       INSERT INTO guarded VALUES ('a', 'before', 1);
       CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
       CREATE TRIGGER keep BEFORE UPDATE ON guarded FOR EACH ROW EXECUTE FUNCTION keep()`,
    );
    const update = { table: 'guarded', key: { sku: 'a' }, set: { writer: 'ours' } };
    expect(await fencedUpdate(pool, { ...update, token: 2n })).toBe(false);
    await pool.query('ALTER TABLE guarded DISABLE TRIGGER keep; UPDATE guarded SET fencing_token = 3');
    await expect(fencedUpdate(pool, { ...update, token: 2n })).rejects.toMatchObject({ code: 'LOCK_LOST' });
  });

  it('quotes identifiers and passes values as parameters', async () => {
    await pool.query(`INSERT INTO "Odd ""schema"."Odd table" VALUES (1, 2, 'old'), (1, 3, 'other')`);
    const odd: FencedUpdate = {
      table: ['Odd "schema', 'Odd table'],
      key: { 'a "key': 1, b: 2 },
      set: { v: "'; DROP TABLE stock; --" },
      token: 4n,
      fenceColumn: 'Fence',
    };
    expect(await fencedUpdate(pool, odd)).toBe(true);
    const { rows } = await pool.query(`SELECT v, "Fence" FROM "Odd ""schema"."Odd table" ORDER BY b`);
    expect(rows).toEqual([
      { v: "'; DROP TABLE stock; --", Fence: '4' },
      { v: 'other', Fence: null },
    ]);
    const client = await pool.connect();
    await client.query('BEGIN');
    await expect(fencedUpdate(client, { ...odd, key: { 'a "key': 1 } })).rejects.toMatchObject({
      code: 'LOCK_INVALID_ARGUMENT',
    });
    await client.query('ROLLBACK');
    client.release();
  });

  it('refuses what would write without a comparison, or compare with nothing', async () => {
    const good: FencedUpdate = { table: 'stock', key: { sku: 'a' }, set: { writer: 'x' }, token: 1n };
    const bad = [
      { token: undefined as unknown as bigint },
      { token: 1 as unknown as bigint },
      { token: 0n },
      { token: -1n },
      { token: 2n ** 63n },
      { key: {} },
      { key: { sku: null } },
      { key: { sku: undefined } },
      { set: {} },
      { set: { writer: undefined } },
      { set: { fencing_token: 1 } },
      { table: '' },
      { fenceColumn: '' },
    ];
    for (const part of bad) {
      await expect(fencedUpdate(pool, { ...good, ...part })).rejects.toMatchObject({
        code: 'LOCK_INVALID_ARGUMENT',
      });
    }
  });
});
