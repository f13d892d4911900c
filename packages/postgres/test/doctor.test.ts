import { createLocks } from '@locks/core';
import { type PostgresServer, startPostgres } from '@locks/test-servers';
import { Pool } from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { examinePostgres } from '../src/doctor.ts';
import { postgresLeaseBackend } from '../src/index.ts';
import { examinePostgres as examineByPostgresJs } from '../src/postgres-js/doctor.ts';
import { SERVER_VERSIONS } from '../src/server-versions.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: 'on', full_page_writes: 'on' } });
});
afterAll(() => server.stop());

it('finds the same by pg and by postgres.js, whose pools stay open, and makes no schema', async () => {
  const pool = new Pool({ connectionString: server.url, max: 1 });
  const sql = postgres(server.url, { max: 1 });
  onTestFinished(async () => {
    await Promise.all([pool.end(), sql.end()]);
  });
  const unused = { store: 'postgres', findings: [], isUnused: true };
  const schema = 'examined-1';
  expect(await examinePostgres(pool, { schema })).toMatchObject(unused);
  expect(await examineByPostgresJs(sql, { schema })).toMatchObject(unused);
  expect(await examinePostgres(server.url, { schema })).toMatchObject(unused);
  await using locks = createLocks(postgresLeaseBackend(server.url, { schema }));
  await locks.prepare();
  expect(await examinePostgres(pool, { schema })).toMatchObject({ ...unused, isUnused: false });
  expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
  expect(await sql`SELECT 1 AS one`).toEqual([{ one: 1 }]);
});

it('postgres/version: the server is older than what locks need, or than what the tests ran on', async () => {
  const ages = async (oldest: string, tested: string): Promise<unknown> => {
    const before = SERVER_VERSIONS.postgres;
    SERVER_VERSIONS.postgres = { oldest, tested };
    try {
      const { findings } = await examinePostgres(server.url);
      return findings.map(({ id, severity }) => [id, severity]);
    } finally {
      SERVER_VERSIONS.postgres = before;
    }
  };
  expect(await ages('99.1', '99.1')).toEqual([['postgres/version', 'error']]);
  expect(await ages('12', '99.1')).toEqual([['postgres/version', 'warning']]);
  expect(await ages('12', '12')).toEqual([]);
});
