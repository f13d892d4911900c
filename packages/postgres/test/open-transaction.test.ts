import { PGlite } from '@electric-sql/pglite';
import { createLocks } from '@locks/core';
import type pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { postgresLeaseBackend as pgliteLeaseBackend } from '../src/pglite/index.ts';
import {
  fencedUpdate,
  postgresAdvisoryBackend,
  postgresSlots,
  postgresResults,
  type SqlClient,
} from '../src/index.ts';
import { startProxy } from '@locks/test-servers';
import { LeaseFixture } from './lease-fixture.ts';

const REFUSED = { code: 'LOCK_BACKEND', message: expect.stringContaining('transaction') };

let fixture: LeaseFixture;
beforeAll(async () => {
  fixture = await LeaseFixture.start();
});
afterAll(() => fixture[Symbol.asyncDispose]());

/** A pool with all of its connections made. */
async function fullPool(max: number): Promise<pg.Pool> {
  const pool = fixture.pool({ max, idleTimeoutMillis: 0 });
  const clients = await Promise.all(Array.from({ length: max }, () => pool.connect()));
  for (const client of clients) client.release();
  return pool;
}

/** Returns a connection to its pool after these statements, as an application does that forgets to end its transaction. */
async function leak(pool: pg.Pool, ...statements: string[]): Promise<pg.PoolClient> {
  const client = await pool.connect();
  for (const statement of statements) await client.query(statement).catch(() => undefined);
  client.release();
  return client;
}

function warnings(): string[] {
  const codes: string[] = [];
  const note = (warning: Error & { code?: string }): void => void codes.push(warning.code ?? '');
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  return codes;
}

describe.each([1, 4])(
  'an application that returns a connection with an open transaction to a pool of %i',
  (max) => {
    it('and rolls back later takes no lock back', async () => {
      const codes = warnings();
      const schema = fixture.schema();
      const pool = await fullPool(max);
      const locks = fixture.locks({ pool, schema });
      const others = fixture.locks({ schema });
      await locks.lock('warm').run(() => undefined);
      const client = await leak(pool, 'BEGIN');
      for (const name of ['a', 'b', 'c']) {
        await using lease = await locks.lock(name).acquire();
        await client.query('ROLLBACK');
        const { holders } = await others.lock(name).inspect();
        expect(holders.map(({ acquisitionId }) => acquisitionId)).toEqual([lease.acquisitionId]);
        await leak(pool, 'BEGIN');
        await lease.release();
        await client.query('ROLLBACK');
        expect((await others.lock(name).inspect()).holders).toEqual([]);
        await leak(pool, 'BEGIN');
      }
      expect(codes).toEqual(['LOCKS_OPEN_TRANSACTION']);
    });

    it('finds its transaction as it was', async () => {
      const schema = fixture.schema();
      const pool = await fullPool(max);
      const locks = fixture.locks({ pool, schema });
      await pool.query(`CREATE TABLE ${schema}_work (done int)`);
      const client = await leak(pool, 'BEGIN', `INSERT INTO ${schema}_work VALUES (1)`);
      await locks.lock('a').run(() => undefined);
      await client.query(`INSERT INTO ${schema}_work VALUES (2)`);
      await client.query('COMMIT');
      expect((await pool.query(`SELECT done FROM ${schema}_work ORDER BY done`)).rows).toEqual([
        { done: 1 },
        { done: 2 },
      ]);
    });

    it('whose transaction has failed costs no acquire and no release', async () => {
      const schema = fixture.schema();
      const pool = await fullPool(max);
      const locks = fixture.locks({ pool, schema });
      await leak(pool, 'BEGIN', 'SELECT 1/0');
      for (let at = 0; at < 20; at += 1) await locks.lock(`name ${at}`).run(() => undefined);
      for await (const { name } of locks.list()) expect.fail(`${name} is still held`);
    });

    it('before its BEGIN is answered takes no lock back', async () => {
      const schema = fixture.schema();
      const pool = await fullPool(max);
      const locks = fixture.locks({ pool, schema });
      await locks.lock('warm').run(() => undefined);
      const client = await pool.connect();
      const begun = client.query('BEGIN');
      client.release();
      await using lease = await locks.lock('a').acquire();
      await begun;
      await client.query('ROLLBACK');
      const { holders } = await fixture.locks({ schema }).lock('a').inspect();
      expect(holders.map(({ acquisitionId }) => acquisitionId)).toEqual([lease.acquisitionId]);
    });
  },
);

it('a connection that the application has left read-only is closed', async () => {
  const schema = fixture.schema();
  const pool = await fullPool(1);
  const locks = fixture.locks({ pool, schema });
  await locks.lock('warm').run(() => undefined);
  await leak(pool, 'SET default_transaction_read_only = on');
  await locks.lock('a').acquire({ waitMs: 3_000 });
});

it('a connection that does not answer whether a transaction is open is closed', async () => {
  const schema = fixture.schema();
  await fixture.prepare({ schema });
  await using proxy = await startProxy(fixture.server, { protocol: 'raw' });
  const url = `postgres://postgres@127.0.0.1:${proxy.port}/postgres`;
  const pool = fixture.pool({ connectionString: url, max: 1 });
  const locks = fixture.locks({ pool, schema });
  await locks.lock('warm').run(() => undefined);
  const client = await pool.connect();
  const old = proxy.connections();
  proxy.blackhole({ only: (connection) => old.includes(connection) });
  // The application returns it while a query is under way, so its state is asked for.
  client.query('SELECT 1').catch(() => undefined);
  client.release();
  await locks.lock('a').acquire({ waitMs: 9_000 });
}, 15_000);

describe('PGlite, whose one session has an open transaction of the application', () => {
  const entry = { slot: '1', state: 'done', token: 1n, label: '', at: 0 } as const;
  // One for all: a server within this process takes seconds of it to start.
  let pglite: PGlite;
  beforeAll(async () => {
    pglite = await PGlite.create();
  });
  afterAll(() => pglite.close());

  it('refuses, names the transaction, and leaves it as it was', async () => {
    const backend = pgliteLeaseBackend(pglite, { schema: 'refuses' });
    const locks = createLocks(backend);
    onTestFinished(() => locks.close());
    const before = await locks.lock('before').acquire();
    await pglite.exec('CREATE TABLE work (done int); BEGIN; INSERT INTO work VALUES (1)');
    const works = await Promise.allSettled([locks.lock('a').acquire({ waitMs: 300 }), before.release()]);
    expect(works).toEqual([
      { status: 'rejected', reason: expect.objectContaining(REFUSED) },
      { status: 'rejected', reason: expect.objectContaining(REFUSED) },
    ]);
    await pglite.exec('COMMIT');
    expect((await pglite.query('SELECT done FROM work')).rows).toEqual([{ done: 1 }]);
    expect((await locks.lock('a').inspect()).holders).toEqual([]);
    await pglite.exec('BEGIN; SELECT 1/0').catch(() => undefined);
    await expect(locks.lock('a').acquire({ waitMs: 300 })).rejects.toMatchObject(REFUSED);
    await pglite.exec('ROLLBACK');
    await locks.lock('a').run(() => undefined);
  });

  it('waits for the end of the transaction for as long as the caller does', async () => {
    const locks = createLocks(pgliteLeaseBackend(pglite, { schema: 'waits' }));
    onTestFinished(() => locks.close());
    await locks.lock('warm').run(() => undefined);
    const begun = pglite.exec('BEGIN');
    const acquired = locks.lock('a').acquire({ waitMs: 10_000 });
    await begun;
    await pglite.exec('ROLLBACK');
    await using lease = await acquired;
    const { holders } = await locks.lock('a').inspect();
    expect(holders.map(({ acquisitionId }) => acquisitionId)).toEqual([lease.acquisitionId]);
  });

  it('keeps no entry back', async () => {
    const slots = postgresSlots(pglite as unknown as SqlClient, { schema: 'kept_back' });
    await slots.read('a');
    await pglite.exec('BEGIN');
    await expect(slots.write('a', entry)).rejects.toMatchObject(REFUSED);
    await pglite.exec('ROLLBACK');
    expect(await slots.write('a', entry)).toBe(true);
  });
});

describe.each([1, 4])('a pool of %i with an open transaction of the application', (max) => {
  const entry = { slot: '1', state: 'done', token: 1n, label: '', at: 0 } as const;

  it.each(['BEGIN', 'failed'] as const)('keeps no entry of postgresSlots back: %s', async (kind) => {
    const schema = fixture.schema();
    const pool = await fullPool(max);
    const slots = postgresSlots(pool, { schema });
    await slots.read('a');
    const client = await leak(
      pool,
      'BEGIN ISOLATION LEVEL REPEATABLE READ',
      kind === 'BEGIN' ? 'SELECT 1' : 'SELECT 1/0',
    );
    const written = slots.write('a', entry);
    if (max === 1) await expect(written).rejects.toMatchObject(REFUSED);
    else expect(await written).toBe(true);
    await client.query('ROLLBACK');
    expect((await postgresSlots(fixture.pool(), { schema }).read('a')).entry).toEqual(
      max === 1 ? undefined : entry,
    );
    expect(await slots.write('b', entry)).toBe(true);
  });

  it('by postgres.js keeps no entry and no fenced update back', async () => {
    const schema = fixture.schema();
    const sql = postgres(fixture.server.url, { max, onnotice: () => undefined });
    onTestFinished(() => sql.end());
    const table = `${schema}_stock`;
    await sql.unsafe(`CREATE TABLE ${table} (sku int PRIMARY KEY, quantity int, fencing_token bigint)`);
    await sql.unsafe(`INSERT INTO ${table} VALUES (1, 0, NULL)`);
    const slots = postgresSlots(sql as unknown as SqlClient, { schema });
    const results = postgresResults(sql as unknown as SqlClient, { schema });
    await slots.read('a');
    await results.get('a');
    const all = await Promise.all(Array.from({ length: max }, () => sql.reserve()));
    for (const other of all.slice(1)) other.release();
    await all[0]?.unsafe('BEGIN');
    all[0]?.release();
    const update = { table, key: { sku: 1 }, set: { quantity: 7 }, token: 1n } as const;
    for (let at = 0; at < max; at += 1) {
      const works = [slots.write(`a${at}`, entry), results.set(`a${at}`, '1', 1n, 60_000)];
      if (max > 1) works.push(fencedUpdate(sql as unknown as SqlClient, update));
      for (const work of works) {
        if (max === 1) await expect(work).rejects.toMatchObject(REFUSED);
        else await work;
      }
    }
    await all[0]?.unsafe('ROLLBACK');
    for (let at = 0; at < max; at += 1) {
      expect((await slots.read(`a${at}`)).entry).toEqual(max === 1 ? undefined : entry);
      expect(await results.get(`a${at}`)).toEqual(max === 1 ? undefined : '1');
    }
    if (max > 1) expect((await sql.unsafe(`SELECT quantity FROM ${table}`))[0]).toEqual({ quantity: 7 });
  });

  it('keeps no fencedUpdate back, and one inside of a transaction is part of it', async () => {
    const pool = await fullPool(max);
    const table = `${fixture.schema()}_stock`;
    await pool.query(`CREATE TABLE ${table} (sku int PRIMARY KEY, quantity int, fencing_token bigint)`);
    await pool.query(`INSERT INTO ${table} VALUES (1, 0, NULL)`);
    const update = { table, key: { sku: 1 }, set: { quantity: 7 }, token: 1n } as const;
    const quantity = async (): Promise<unknown> =>
      (await fixture.server.query(`SELECT quantity FROM ${table}`))[0]?.['quantity'];
    const client = await leak(pool, 'BEGIN');
    const updated = fencedUpdate(pool, update);
    if (max === 1) await expect(updated).rejects.toMatchObject(REFUSED);
    else expect(await updated).toBe(true);
    await client.query('ROLLBACK');
    expect(Number(await quantity())).toBe(max === 1 ? 0 : 7);
    const own = await pool.connect();
    await own.query('BEGIN');
    expect(await fencedUpdate(own, { ...update, set: { quantity: 8 } })).toBe(true);
    await own.query('ROLLBACK');
    own.release();
    expect(Number(await quantity())).toBe(max === 1 ? 0 : 7);
  });

  it('costs no advisory lock, whose session is its own', async () => {
    const pool = await fullPool(max);
    const client = await leak(pool, 'BEGIN');
    const advisory = createLocks(postgresAdvisoryBackend(pool));
    onTestFinished(() => advisory.close());
    await using _ = await advisory.lock('advisory').acquire();
    await client.query('ROLLBACK');
    expect((await advisory.lock('advisory').inspect()).holders).toHaveLength(1);
  });

  it('is not committed by a migration', async () => {
    const schema = fixture.schema();
    const pool = await fullPool(max);
    const client = await leak(pool, 'BEGIN', `CREATE TABLE ${schema}_half (done int)`);
    await fixture.locks({ pool, schema }).prepare();
    await client.query('ROLLBACK');
    const [row] = await fixture.server.query(
      `SELECT to_regclass('${schema}_half') AS half, to_regclass('${schema}.locks') AS locks`,
    );
    expect(row).toMatchObject({ half: null, locks: expect.anything() });
  });
});

describe('one session with an open transaction', () => {
  const entry = { slot: '1', state: 'done', token: 1n, label: '', at: 0 } as const;

  it('of a client is refused by a record', async () => {
    const client = await fixture.session();
    const slots = postgresSlots(client, { schema: fixture.schema() });
    await slots.read('a');
    await client.query('BEGIN');
    await expect(slots.write('a', entry)).rejects.toMatchObject(REFUSED);
    await client.query('ROLLBACK');
    expect(await slots.write('a', entry)).toBe(true);
  });
});
