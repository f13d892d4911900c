import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { postgresSlots, schemaStatements } from '../src/index.ts';
import { LeaseFixture } from './lease-fixture.ts';

let fixture: LeaseFixture;
beforeAll(async () => {
  fixture = await LeaseFixture.start();
});
afterAll(() => fixture[Symbol.asyncDispose]());

describe.concurrent('the schema', () => {
  it('is created by the first call and not before', async () => {
    const schema = fixture.schema();
    const locks = fixture.locks({ schema });
    const there = () => fixture.server.query(`SELECT 1 FROM pg_namespace WHERE nspname = '${schema}'`);
    expect(await there()).toHaveLength(0);
    await locks.lock('a').run(() => undefined);
    expect(await there()).toHaveLength(1);
  });

  it('is created once by many backends at the same time', async () => {
    const schema = fixture.schema();
    const pools = Array.from({ length: 8 }, () => fixture.pool());
    await Promise.all(
      pools.map(async (pool) => {
        await fixture
          .locks({ pool, schema })
          .lock('a')
          .run(() => undefined, { waitMs: 15_000 });
        await fixture.locks({ pool, schema }).prepare();
      }),
    );
    expect(await fixture.server.query(`SELECT version FROM ${schema}.schema_version`)).toEqual([
      { version: '1' },
    ]);
  });

  it('is refused and left unchanged if its version is newer', async () => {
    const schema = fixture.schema();
    const pool = fixture.pool();
    await fixture.prepare({ pool, schema });
    await pool.query(`UPDATE ${schema}.schema_version SET version = 99`);
    await expect(fixture.locks({ pool, schema }).lock('a').acquire()).rejects.toMatchObject({
      code: 'LOCK_BACKEND',
      cause: { code: 'NEWER_SCHEMA' },
    });
    await expect(fixture.locks({ pool, schema }).prepare()).rejects.toMatchObject({
      code: 'LOCK_BACKEND',
      cause: { code: 'NEWER_SCHEMA' },
    });
    expect((await pool.query(`SELECT version FROM ${schema}.schema_version`)).rows).toEqual([
      { version: 99 },
    ]);
  });

  it('is not created with `autoPrepare: false`, and works when its SQL was run by hand', async () => {
    const schema = fixture.schema();
    const pool = fixture.pool();
    const locks = fixture.locks({ pool, schema, autoPrepare: false });
    await expect(locks.lock('a').acquire()).rejects.toMatchObject({ cause: { code: 'NOT_MIGRATED' } });
    for (const statement of schemaStatements({ schema })) await pool.query(statement);
    await locks.lock('a').run(() => undefined);
  });

  it('works for a role that may use it and not create it', async () => {
    const schema = fixture.schema();
    const role = `${schema}_user`;
    await fixture.server.query(`CREATE ROLE ${role} LOGIN`);
    const url = new URL(fixture.server.url);
    url.username = role;
    const pool = fixture.pool({ connectionString: url.href });
    await expect(fixture.locks({ pool, schema }).lock('a').acquire()).rejects.toMatchObject({
      cause: { code: 'NO_PRIVILEGE' },
    });
    await expect(fixture.locks({ pool, schema }).prepare()).rejects.toMatchObject({
      code: 'LOCK_BACKEND',
      message: expect.stringMatching(/permission denied for database .*needs CREATE on the database/),
      cause: { code: 'NO_PRIVILEGE' },
    });
    await fixture.prepare({ schema });
    await expect(fixture.locks({ pool, schema }).lock('a').acquire()).rejects.toMatchObject({
      cause: { code: 'NO_PRIVILEGE' },
    });
    await fixture.server.query(`GRANT USAGE ON SCHEMA ${schema} TO ${role};
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${role};
      GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${schema} TO ${role}`);
    const locks = fixture.locks({ pool, schema, autoPrepare: false });
    const lease = await locks.lock('a').acquire();
    await lease.renew();
    await lease.release();
    expect(await postgresSlots(pool, { schema }).read('a')).toMatchObject({ entry: undefined });
    // What is there needs no right to create, so that whoever prepares twice does no harm.
    await locks.prepare();
  });

  it('is created again after it was dropped', async () => {
    const schema = fixture.schema();
    const locks = fixture.locks({ schema });
    await locks.lock('a').run(() => undefined);
    await fixture.server.query(`SET client_min_messages = warning; DROP SCHEMA ${schema} CASCADE`);
    await expect(locks.lock('a').acquire()).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
    await locks.lock('a').run(() => undefined);
  });

  it('refuses transactions that are not at read committed', async () => {
    const schema = fixture.schema();
    const pool = fixture.pool({ options: '-c default_transaction_isolation=serializable' });
    const locks = fixture.locks({ pool, schema });
    await expect(locks.lock('a').acquire({ waitMs: 1_000 })).rejects.toMatchObject({
      code: 'LOCK_UNSUPPORTED',
      message: expect.stringContaining('read committed'),
    });
    // A connection that is at another level after the first call grants nothing either, since its release could fail.
    await fixture
      .locks({ schema })
      .lock('a')
      .run(() => undefined);
    const mixed = fixture.pool({ max: 1 });
    const later = fixture.locks({ pool: mixed, schema });
    await later.lock('a').run(() => undefined);
    await mixed.query('SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ');
    await expect(later.lock('a').acquire({ waitMs: 1_000 })).rejects.toMatchObject({
      code: 'LOCK_BACKEND',
      cause: { code: 'LK001' },
    });
    expect((await fixture.locks({ schema }).lock('a').inspect()).holders).toEqual([]);
  });
});
