import { spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  findServer,
  type PostgresOptions,
  type PostgresServer,
  startPgbouncer,
  startPostgres,
  waitUntil,
} from '@locks/test-servers';
import { afterEach, describe, expect, it } from 'vitest';
import { folder, locks } from '../program.ts';
import { diagnose, diagnoseNeeding, diagnoseSupporting, severities } from './diagnose.ts';

const DURABLE = { fsync: 'on', full_page_writes: 'on' };

const started: { stop(): Promise<void> }[] = [];

afterEach(async () => {
  await Promise.all(
    started
      .splice(0)
      .reverse()
      .map((server) => server.stop()),
  );
});

async function startEmpty(settings: PostgresOptions['settings'] = {}): Promise<PostgresServer> {
  const server = await startPostgres({ settings: { ...DURABLE, ...settings } });
  started.push(server);
  return server;
}

/** A server that loses nothing, with the tables of the locks. */
async function start(settings: PostgresOptions['settings'] = {}): Promise<PostgresServer> {
  const server = await startEmpty(settings);
  await makeTables(server.url);
  return server;
}

async function makeTables(url: string): Promise<void> {
  expect(await locks(url, 'run', 'first', '--', 'true')).toMatchObject({ code: 0 });
}

/** The address of a role with these rights. */
async function urlOfRole(server: PostgresServer, ...grants: string[]): Promise<string> {
  await server.query('CREATE ROLE app LOGIN');
  for (const grant of grants) await server.query(grant);
  return server.url.replace('postgres@', 'app@');
}

describe('locks doctor on PostgreSQL', () => {
  it('finds nothing where nothing is wrong', async () => {
    const server = await start();
    const [row] = await server.query('SHOW server_version');
    const version = row?.['server_version']?.split(' ')[0];
    expect(await diagnose(server.url)).toEqual({ store: 'postgres', version, findings: [] });
  });

  it('makes no tables where there are none yet', async () => {
    const server = await startEmpty();
    expect(severities(await diagnose(server.url))).toEqual({});
    expect(await server.query("SELECT nspname FROM pg_namespace WHERE nspname = 'locks'")).toEqual([]);
  });

  it('postgres/schema-missing: the role may not create the tables', async () => {
    const server = await startEmpty();
    const url = await urlOfRole(server);
    expect(severities(await diagnose(url))).toEqual({ 'postgres/schema-missing': 'error' });
  });

  it('postgres/privileges: the role may not use the tables', async () => {
    const server = await start();
    const url = await urlOfRole(server);
    expect(severities(await diagnose(url))).toEqual({ 'postgres/privileges': 'error' });
    // What the finding says is enough.
    for (const grant of [
      'USAGE ON SCHEMA locks',
      'SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA locks',
      'USAGE ON ALL SEQUENCES IN SCHEMA locks',
    ])
      await server.query(`GRANT ${grant} TO app`);
    expect(severities(await diagnose(url))).toEqual({});
  });

  it('postgres/version: the server is older than what locks need', async () => {
    const server = await start();
    const [row] = await server.query('SHOW server_version');
    const version = row?.['server_version']?.split(' ')[0] ?? '';
    expect(severities(await diagnoseNeeding('postgres', version, server.url))).toEqual({});
    const { findings } = await diagnoseNeeding('postgres', '99.1', server.url);
    expect(findings).toEqual([
      expect.objectContaining({
        id: 'postgres/version',
        severity: 'error',
        what: expect.stringMatching(
          new RegExp(`^the server is postgres ${version}.*need 99.1 or newer$`),
        ) as string,
      }),
    ]);
  });

  it('postgres/version: the server is older than what the tests ran on', async () => {
    const server = await start();
    const { version = '', findings } = await diagnoseSupporting('postgres', '99.1', server.url);
    expect(findings).toEqual([
      {
        id: 'postgres/version',
        severity: 'warning',
        what: expect.stringContaining(`postgres ${version}`) as string,
        toDo: 'upgrade the server to 99.1 or newer',
      },
    ]);
    expect(severities(await diagnoseSupporting('postgres', version, server.url))).toEqual({});
  });

  it('postgres/schema-newer: a newer version made the tables', async () => {
    const server = await start();
    await server.query('UPDATE locks.schema_version SET version = 99');
    expect(severities(await diagnose(server.url))).toEqual({ 'postgres/schema-newer': 'error' });
  });

  it('postgres/trial: what the tables need is gone', async () => {
    const server = await start();
    const [table] = await server.query(
      "SELECT tablename FROM pg_tables WHERE schemaname = 'locks' AND tablename <> 'schema_version' ORDER BY tablename LIMIT 1",
    );
    await server.query(`DROP TABLE locks.${table?.['tablename']} CASCADE`);
    expect(severities(await diagnose(server.url))).toEqual({ 'postgres/trial': 'error' });
  });

  it('postgres/read-only: transactions of this database only read', async () => {
    const server = await start();
    await server.query('ALTER DATABASE postgres SET default_transaction_read_only = on');
    expect(severities(await diagnose(server.url))).toEqual({ 'postgres/read-only': 'error' });
  });

  it('postgres/standby: the server is a standby', async () => {
    const server = await start();
    await writeFile(join(server.dir, 'data', 'standby.signal'), '');
    await server.restart();
    expect(severities(await diagnose(server.url))).toEqual({ 'postgres/standby': 'error' });
  });

  it.each(['fsync', 'full_page_writes', 'synchronous_commit'])(
    'postgres/durability: %s is off',
    async (setting) => {
      const server = await start({ [setting]: 'off' });
      const { findings } = await diagnose(server.url);
      expect(findings).toEqual([
        expect.objectContaining({
          id: 'postgres/durability',
          what: expect.stringContaining(setting) as string,
        }),
      ]);
    },
  );

  it('postgres/failover: replication is asynchronous', async () => {
    const server = await start();
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
      expect(severities(await diagnose(server.url))).toEqual({ 'postgres/failover': 'warning' });
      await server.query("ALTER SYSTEM SET synchronous_standby_names = 'pg_receivewal'");
      await server.query('SELECT pg_reload_conf()');
      await waitUntil(
        async () =>
          (await server.query('SHOW synchronous_standby_names'))[0]?.['synchronous_standby_names'] !== '',
        { what: 'the new setting' },
      );
      expect(severities(await diagnose(server.url))).toEqual({});
    } finally {
      receiver.kill('SIGKILL');
    }
  });

  it.each(['transaction', 'statement'] as const)(
    'postgres/pooler: a pooler lends connections for each %s',
    async (poolMode) => {
      const server = await start();
      const pooler = await startPgbouncer(server, { poolMode });
      started.push(pooler);
      expect(severities(await diagnose(pooler.url))).toMatchObject({ 'postgres/pooler': 'warning' });
    },
  );

  it('a pooler that lends sessions is well', async () => {
    const server = await start();
    const pooler = await startPgbouncer(server, { poolMode: 'session', poolSize: 20 });
    started.push(pooler);
    expect(severities(await diagnose(pooler.url))).toEqual({});
  });

  it('postgres/connections: nearly all connections are in use', async () => {
    // Of these 40, 3 are kept for superusers, and doctor itself uses some.
    const server = await start({ max_connections: 40 });
    const sleepers = Array.from({ length: 33 }, () => server.query('SELECT pg_sleep(600)').catch(() => []));
    await waitUntil(
      async () =>
        (await server.query("SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep(6%'")).length > 33,
      { what: 'the connections' },
    );
    expect(severities(await diagnose(server.url))).toMatchObject({ 'postgres/connections': 'warning' });
    await server.terminate();
    await Promise.all(sleepers);
  });

  it('postgres/clock: the clocks are apart', async () => {
    const server = await start();
    expect(severities(await diagnose(server.url, { clock: 'wrong' }))).toEqual({
      'postgres/clock': 'warning',
    });
  });
});
