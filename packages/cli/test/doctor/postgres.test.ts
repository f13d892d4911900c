import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createLocks } from '@locks/core';
import { postgresLeaseBackend } from '@locks/postgres';
import {
  findServer,
  type PostgresServer,
  type QueryRow,
  startPgbouncer,
  startPostgres,
  waitUntil,
} from '@locks/test-servers';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { folder } from '../program.ts';
import { diagnose, severities } from './diagnose.ts';

const DURABLE = { fsync: 'on', full_page_writes: 'on' };

/** Of all tests that need no settings of their own: each has a database in it. */
let server: PostgresServer;
let count = 0;
const started: { stop(): Promise<void> }[] = [];

beforeAll(async () => {
  server = await startPostgres({ settings: DURABLE });
});
afterAll(() => server.stop());
afterEach(async () => {
  await Promise.all(
    started
      .splice(0)
      .reverse()
      .map((one) => one.stop()),
  );
});

interface Database {
  readonly name: string;
  readonly url: string;
  query(sql: string): Promise<QueryRow[]>;
}

/** A database of a server that loses nothing. */
async function empty(): Promise<Database> {
  const name = `doctor_${++count}`;
  await server.query(`CREATE DATABASE ${name}`);
  return { name, url: server.urlOf(name), query: (sql) => server.query(sql, { database: name }) };
}

/** The same with the tables of the locks. */
async function withTables(): Promise<Database> {
  const database = await empty();
  await makeTables(database.url);
  return database;
}

async function makeTables(url: string): Promise<void> {
  await using locks = createLocks(postgresLeaseBackend(url));
  await locks.lock('first').run(() => undefined);
}

/** The address of a role without rights. */
async function urlOfRole(database: Database): Promise<string> {
  await server.query(`CREATE ROLE app_${database.name} LOGIN`);
  return database.url.replace('postgres@', `app_${database.name}@`);
}

/** Changes a setting of the whole server for a while. */
async function withSetting(setting: string, value: string, work: () => Promise<void>): Promise<void> {
  const set = async (
    statement: string,
    isDone: (now: string | null | undefined) => boolean,
  ): Promise<void> => {
    await server.query(statement);
    await server.query('SELECT pg_reload_conf()');
    await waitUntil(async () => isDone((await server.query(`SHOW ${setting}`))[0]?.[setting]), {
      what: `the new value of ${setting}`,
    });
  };
  const [before] = await server.query(`SHOW ${setting}`);
  await set(`ALTER SYSTEM SET ${setting} = '${value}'`, (now) => now === value);
  try {
    await work();
  } finally {
    await set(`ALTER SYSTEM RESET ${setting}`, (now) => now === before?.[setting]);
  }
}

describe('locks doctor on PostgreSQL', () => {
  it('finds nothing where nothing is wrong', async () => {
    const database = await withTables();
    const [row] = await server.query('SHOW server_version');
    const version = row?.['server_version']?.split(' ')[0];
    expect(await diagnose(database.url)).toEqual({ store: 'postgres', version, findings: [] });
  });

  it('makes no tables where there are none yet', async () => {
    const database = await empty();
    expect(severities(await diagnose(database.url))).toEqual({});
    expect(await database.query("SELECT nspname FROM pg_namespace WHERE nspname = 'locks'")).toEqual([]);
  });

  it('postgres/schema-missing: the role may not create the tables', async () => {
    const database = await empty();
    const url = await urlOfRole(database);
    expect(severities(await diagnose(url))).toEqual({ 'postgres/schema-missing': 'error' });
  });

  it('postgres/privileges: the role may not use the tables', async () => {
    const database = await withTables();
    const url = await urlOfRole(database);
    expect(severities(await diagnose(url))).toEqual({ 'postgres/privileges': 'error' });
    // What the finding says is enough.
    for (const grant of [
      'USAGE ON SCHEMA locks',
      'SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA locks',
      'USAGE ON ALL SEQUENCES IN SCHEMA locks',
    ])
      await database.query(`GRANT ${grant} TO app_${database.name}`);
    expect(severities(await diagnose(url))).toEqual({});
  });

  it('postgres/layout: a newer version made the tables', async () => {
    const database = await withTables();
    await database.query('UPDATE locks.schema_version SET version = 99');
    expect(severities(await diagnose(database.url))).toEqual({ 'postgres/layout': 'error' });
  });

  it('postgres/trial: what the tables need is gone', async () => {
    const database = await withTables();
    const [table] = await database.query(
      "SELECT tablename FROM pg_tables WHERE schemaname = 'locks' AND tablename <> 'schema_version' ORDER BY tablename LIMIT 1",
    );
    await database.query(`DROP TABLE locks.${table?.['tablename']} CASCADE`);
    expect(severities(await diagnose(database.url))).toEqual({ 'postgres/trial': 'error' });
  });

  it('postgres/read-only: transactions of this database only read', async () => {
    const database = await withTables();
    await server.query(`ALTER DATABASE ${database.name} SET default_transaction_read_only = on`);
    expect(severities(await diagnose(database.url))).toEqual({ 'postgres/read-only': 'error' });
  });

  it('postgres/read-only: transactions only read, and there are no tables yet', async () => {
    const database = await empty();
    await server.query(`ALTER DATABASE ${database.name} SET default_transaction_read_only = on`);
    expect(severities(await diagnose(database.url))).toEqual({ 'postgres/read-only': 'error' });
  });

  const durabilityOf = (setting: string) => [
    expect.objectContaining({ id: 'postgres/durability', what: expect.stringContaining(setting) as string }),
  ];

  it.each(['fsync', 'full_page_writes'])('postgres/durability: %s is off', async (setting) => {
    // Given at the start, these cannot be changed later.
    const own = await startPostgres({ settings: { ...DURABLE, [setting]: 'off' } });
    started.push(own);
    await makeTables(own.url);
    expect((await diagnose(own.url)).findings).toEqual(durabilityOf(setting));
  });

  it('postgres/durability: synchronous_commit is off', async () => {
    const { url } = await withTables();
    await withSetting('synchronous_commit', 'off', async () => {
      expect((await diagnose(url)).findings).toEqual(durabilityOf('synchronous_commit'));
    });
  });

  it('postgres/failover: replication is asynchronous', async () => {
    const database = await withTables();
    // It receives the log as a standby does.
    const receiver = spawn(
      findServer('pg_receivewal'),
      ['-h', server.host, '-p', String(server.port), '-U', 'postgres', '-D', folder(), '--synchronous'],
      { stdio: 'ignore' },
    );
    try {
      await waitUntil(async () => (await server.query('SELECT 1 FROM pg_stat_replication')).length > 0, {
        what: 'the receiver of the log',
      });
      expect(severities(await diagnose(database.url))).toEqual({ 'postgres/failover': 'warning' });
      await withSetting('synchronous_standby_names', 'pg_receivewal', async () => {
        expect(severities(await diagnose(database.url))).toEqual({});
      });
    } finally {
      receiver.kill('SIGKILL');
    }
  });

  it.each(['transaction', 'statement'] as const)(
    'postgres/pooler: a pooler lends connections for each %s',
    async (poolMode) => {
      await makeTables(server.url);
      const pooler = await startPgbouncer(server, { poolMode });
      started.push(pooler);
      expect(severities(await diagnose(pooler.url))).toMatchObject({ 'postgres/pooler': 'warning' });
    },
  );

  it('a pooler that lends sessions is well', async () => {
    await makeTables(server.url);
    const pooler = await startPgbouncer(server, { poolMode: 'session', poolSize: 20 });
    started.push(pooler);
    expect(severities(await diagnose(pooler.url))).toEqual({});
  });

  it('postgres/connections, postgres/standby: nearly all connections are in use; the server is a standby', async () => {
    // Of these 40, 3 are kept for superusers, and doctor itself uses some.
    const own = await startPostgres({ settings: { ...DURABLE, max_connections: 40 } });
    started.push(own);
    await makeTables(own.url);
    const sleepers = Array.from({ length: 33 }, () => own.query('SELECT pg_sleep(600)').catch(() => []));
    await waitUntil(
      async () =>
        (await own.query("SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep(6%'")).length > 33,
      { what: 'the connections' },
    );
    expect(severities(await diagnose(own.url))).toMatchObject({ 'postgres/connections': 'warning' });
    await own.terminate();
    await Promise.all(sleepers);
    await writeFile(join(own.dir, 'data', 'standby.signal'), '');
    await own.restart();
    expect(severities(await diagnose(own.url))).toEqual({ 'postgres/standby': 'error' });
  });

  it('postgres/clock: the clocks are apart', async () => {
    const database = await withTables();
    expect(severities(await diagnose(database.url, { clock: 'wrong' }))).toEqual({
      'postgres/clock': 'warning',
    });
  });
});
