import { createLocks, type LockManager } from '@locks/core';
import { waitUntil } from '@locks/test-servers';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  advisoryLockInTransaction,
  advisoryKey,
  fencedUpdate,
  postgresAdvisoryBackend,
  tryAdvisoryLockInTransaction,
  schemaStatements,
} from '../src/index.ts';
import { captures, createHostileSchema } from './hostile-schema.ts';
import { LeaseFixture } from './lease-fixture.ts';

let fixture: LeaseFixture;
let admin: pg.Client;
beforeAll(async () => {
  fixture = await LeaseFixture.start();
  admin = await fixture.session();
  await createHostileSchema(admin);
});
afterAll(() => fixture[Symbol.asyncDispose]());
afterEach(async () => {
  expect(await captures(admin)).toBe(0);
});

/** The hostile schema before `pg_catalog`, and behind it, where `public` is by default. */
const paths = ['hostile,pg_catalog', 'hostile'] as const;

function hostilePool(path: string): pg.Pool {
  return fixture.pool({ options: `-c search_path=${path}` });
}

async function hostileClient(path: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: fixture.server.url,
    options: `-c search_path=${path}`,
  });
  await client.connect();
  return client;
}

async function untilWaiting(locks: LockManager, name: string): Promise<void> {
  await waitUntil(async () => (await locks.inspect(name)).waiters.length > 0, { what: 'a waiter' });
}

describe.each(paths)('with hostile functions, operators, types and tables on search_path = %s', (path) => {
  it('a bare statement is captured, so the schema is hostile', async () => {
    const client = await hostileClient(path);
    const captured = path === 'hostile' ? `SELECT nextval('x.y')` : 'SELECT pg_try_advisory_lock(1::bigint)';
    await expect(client.query(captured)).rejects.toThrow(/captured/);
    await client.end();
    await admin.query(`SELECT setval('hostile.captures', 1, false)`);
  });

  it('the lease backend creates its schema and does all its steps', async () => {
    const schema = fixture.schema();
    const pool = hostilePool(path);
    const [one, two] = [fixture.locks({ schema, pool }), fixture.locks({ schema, pool: hostilePool(path) })];
    const first = await one.lock('a').acquire();
    const second = await one.lock('b').acquire();
    expect(second.fencingToken as bigint).toBeGreaterThan(first.fencingToken as bigint);
    await first.renew(20_000);
    const waiting = two.lock('a').acquire();
    await untilWaiting(one, 'a');
    const abort = new AbortController();
    const aborted = two.lock('a').acquire({ signal: abort.signal });
    abort.abort(new Error('enough'));
    await expect(aborted).rejects.toThrow('enough');
    await first.release();
    await (await waiting).release();
    expect((await one.forceRelease('b')).length).toBe(1);
    await two.lock('c').run(() => undefined);

    const { read, write } = one.readWriteLock('rw');
    const writer = await write.acquire();
    const reads = [read.acquire(), two.readWriteLock('rw').read.acquire()];
    await untilWaiting(one, 'rw');
    await writer.downgrade();
    for (const lease of await Promise.all(reads)) await lease.release();
    await writer.release();

    const permits = await Promise.all([1, 2].map(() => one.semaphore('s', 2).acquire()));
    expect(await two.semaphore('s', 2).tryAcquire()).toBeUndefined();
    for (const permit of permits) await permit.release();

    const all = await one.all(['x', 'y'].map((name) => one.lock(name))).acquire();
    expect(await two.all(['y', 'z'].map((name) => two.lock(name))).tryAcquire()).toBeUndefined();
    const names: string[] = [];
    for await (const { name } of one.list('')) names.push(name);
    expect(names).toEqual(['x', 'y']);
    const stolen = await two.lock('x').acquire({ steal: true });
    await stolen.release();
    await all.release().catch(() => undefined);

    const order: number[] = [];
    const turns = [0, 1, 2, 3].map((turn) => one.lock('many').run(() => void order.push(turn)));
    await Promise.all(turns);
    expect(order).toEqual([0, 1, 2, 3]);
    await pool.query(`UPDATE ${schema}.schema_version SET swept_at = '-infinity'`);
    await pool.query(`SELECT ${schema}.sweep()`);
  });

  it('schemaStatements() create the same schema', async () => {
    const schema = fixture.schema();
    const client = await hostileClient(path);
    for (const statement of schemaStatements({ schema })) await client.query(statement);
    await client.end();
    const locks = fixture.locks({ schema, pool: hostilePool(path), autoPrepare: false });
    await locks.lock('a').run(() => undefined);
  });

  it('advisory locks exclude, wait, are shared, inspected and force-released', async () => {
    const schema = fixture.schema();
    const open = () => createLocks(postgresAdvisoryBackend(hostilePool(path), { fencing: { schema } }));
    await using one = open();
    await using two = open();
    const first = await one.lock('a').acquire();
    expect(await two.lock('a').tryAcquire()).toBeUndefined();
    const waiting = two.lock('a').acquire();
    await untilWaiting(one, 'a');
    const abort = new AbortController();
    const aborted = one.lock('a').acquire({ signal: abort.signal });
    await waitUntil(async () => (await one.inspect('a')).waiters.length === 2, { what: 'two waiters' });
    abort.abort(new Error('enough'));
    await expect(aborted).rejects.toThrow('enough');
    await first.renew();
    await first.release();
    const second = await waiting;
    expect(second.fencingToken as bigint).toBeGreaterThan(first.fencingToken as bigint);
    expect((await one.forceRelease('a')).length).toBe(1);
    await second.release().catch(() => undefined);
    const writer = await one.readWriteLock('rw').write.acquire();
    const reader = two.readWriteLock('rw').read.acquire();
    await untilWaiting(one, 'rw');
    await writer.downgrade();
    await (await reader).release();
    await writer.release();
    const many = await Promise.all(Array.from({ length: 50 }, (_, at) => one.lock(`many ${at}`).acquire()));
    expect(new Set(many.map(({ fencingToken }) => fencingToken)).size).toBe(50);
    await Promise.all(many.map((lease) => lease.release()));
  });

  it('a lock in a transaction is one that PostgreSQL sees', async () => {
    const client = await hostileClient(path);
    const other = await hostileClient(path);
    await client.query('BEGIN');
    await advisoryLockInTransaction(client, 'a');
    await advisoryLockInTransaction(client, 'b', { mode: 'shared' });
    expect(await tryAdvisoryLockInTransaction(client, 'c', { mode: 'shared' })).toBe(true);
    await other.query('BEGIN');
    expect(await tryAdvisoryLockInTransaction(other, 'a')).toBe(false);
    await expect(advisoryLockInTransaction(other, 'b', { waitMs: 20 })).rejects.toMatchObject({
      code: 'LOCK_TIMEOUT',
    });
    const { rows } = await admin.query('SELECT NOT pg_try_advisory_xact_lock($1::bigint) AS held', [
      String(advisoryKey('a')),
    ]);
    expect(rows).toEqual([{ held: true }]);
    await client.query('COMMIT');
    expect(await tryAdvisoryLockInTransaction(other, 'a')).toBe(true);
    await other.query('COMMIT');
    await Promise.all([client.end(), other.end()]);
  });

  it.each(['bigint', 'integer', 'numeric'])(
    'a fenced update compares its column of type %s',
    async (type) => {
      const schema = fixture.schema();
      await admin.query(
        `CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.stock (sku varchar(9) PRIMARY KEY, n integer, fencing_token ${type});
       INSERT INTO ${schema}.stock VALUES ('x', 1, NULL)`,
      );
      const client = await hostileClient(path);
      const write = (token: bigint, sku = 'x') =>
        fencedUpdate(client, { table: [schema, 'stock'], key: { sku }, set: { n: Number(token) }, token });
      expect(await write(5n)).toBe(true);
      expect(await write(5n, 'y')).toBe(false);
      await expect(write(4n)).rejects.toMatchObject({ code: 'LOCK_LOST' });
      const { rows } = await admin.query(`SELECT n FROM ${schema}.stock`);
      expect(rows).toEqual([{ n: 5 }]);
      await client.end();
    },
  );
});
