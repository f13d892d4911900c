import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { leaseSchemaSql, migrateLeaseSchema } from '../src/index.ts';
import { LeasePlace } from './lease-place.ts';

let place: LeasePlace;
beforeAll(async () => {
  place = await LeasePlace.start();
});
afterAll(() => place[Symbol.asyncDispose]());

describe.concurrent('the schema', () => {
  it('is made by the first call, and only then', async () => {
    const schema = place.schema();
    const locks = place.locks({ schema });
    const there = () => place.server.query(`SELECT 1 FROM pg_namespace WHERE nspname = '${schema}'`);
    expect(await there()).toHaveLength(0);
    await locks.lock('a').run(() => undefined);
    expect(await there()).toHaveLength(1);
  });

  it('is made once by many backends at a time', async () => {
    const schema = place.schema();
    const pools = Array.from({ length: 8 }, () => place.pool());
    await Promise.all(
      pools.map(async (pool) => {
        await place
          .locks({ pool, schema })
          .lock('a')
          .run(() => undefined, { waitMs: 15_000 });
        await migrateLeaseSchema({ pool, schema });
      }),
    );
    expect(await place.server.query(`SELECT version FROM ${schema}.schema_version`)).toEqual([
      { version: '1' },
    ]);
  });

  it('is made once by two processes at a time', async () => {
    const schema = place.schema();
    const program = fileURLToPath(new URL('./lease-migrate-main.ts', import.meta.url));
    const codes = await Promise.all(
      [1, 2].map(async () => {
        const child = fork(program, [place.server.url, schema], { execArgv: [] });
        const [code] = (await once(child, 'exit')) as [number];
        return code;
      }),
    );
    expect(codes).toEqual([0, 0]);
  });

  it('of a newer version is refused, and left as it is', async () => {
    const schema = place.schema();
    const pool = place.pool();
    await migrateLeaseSchema({ pool, schema });
    await pool.query(`UPDATE ${schema}.schema_version SET version = 99`);
    await expect(place.locks({ pool, schema }).lock('a').acquire()).rejects.toMatchObject({
      code: 'LOCK_BACKEND',
      cause: { code: 'NEWER_SCHEMA' },
    });
    await expect(migrateLeaseSchema({ pool, schema })).rejects.toMatchObject({ code: 'NEWER_SCHEMA' });
    expect((await pool.query(`SELECT version FROM ${schema}.schema_version`)).rows).toEqual([
      { version: 99 },
    ]);
  });

  it('is not made where that is forbidden; the SQL for it is enough', async () => {
    const schema = place.schema();
    const pool = place.pool();
    const locks = place.locks({ pool, schema, migrate: false });
    await expect(locks.lock('a').acquire()).rejects.toMatchObject({ cause: { code: 'NOT_MIGRATED' } });
    await pool.query(leaseSchemaSql(schema));
    await locks.lock('a').run(() => undefined);
  });

  it('needs no more than to be used by a role that may not create', async () => {
    const schema = place.schema();
    const role = `${schema}_user`;
    await place.server.query(`CREATE ROLE ${role} LOGIN`);
    const url = new URL(place.server.url);
    url.username = role;
    const pool = place.pool({ connectionString: url.href });
    await expect(place.locks({ pool, schema }).lock('a').acquire()).rejects.toMatchObject({
      cause: { code: 'NO_PRIVILEGE' },
    });
    await migrateLeaseSchema({ connectionString: place.server.url, schema });
    await expect(place.locks({ pool, schema }).lock('a').acquire()).rejects.toMatchObject({
      cause: { code: 'NO_PRIVILEGE' },
    });
    await place.server.query(`GRANT USAGE ON SCHEMA ${schema} TO ${role};
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${role};
      GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${schema} TO ${role}`);
    const locks = place.locks({ pool, schema });
    const lease = await locks.lock('a').acquire();
    await lease.renew();
    await lease.release();
  });

  it('that was dropped is made again', async () => {
    const schema = place.schema();
    const locks = place.locks({ schema });
    await locks.lock('a').run(() => undefined);
    await place.server.query(`SET client_min_messages = warning; DROP SCHEMA ${schema} CASCADE`);
    await expect(locks.lock('a').acquire()).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
    await locks.lock('a').run(() => undefined);
  });

  it('refuses transactions that would not see what others have done', async () => {
    const schema = place.schema();
    const pool = place.pool({ options: '-c default_transaction_isolation=serializable' });
    const locks = place.locks({ pool, schema });
    const lease = await locks.lock('a').acquire();
    await expect(locks.lock('a').acquire({ waitMs: 1_000 })).rejects.toMatchObject({
      code: 'LOCK_BACKEND',
      cause: { code: 'LK001' },
    });
    await lease.release();
  });
});
