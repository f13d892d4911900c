import { createLocks } from '@locks/core';
import { mysqlBackend } from '@locks/mysql';
import { type MariadbServer, startMariadb } from '@locks/test-servers';
import mysql from 'mysql2/promise';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { oldVersion } from '../../src/doctor/old-version.ts';
import { diagnose, diagnoseNeeding, diagnoseSupporting, severities } from './diagnose.ts';

/** A server that loses nothing. Each test finds it without tables. */
let server: MariadbServer;

beforeAll(async () => {
  server = await startMariadb({ args: ['--innodb-flush-log-at-trx-commit=1'] });
});
afterAll(() => server.stop());
beforeEach(async () => {
  await asAdmin(
    'DROP DATABASE locks',
    'CREATE DATABASE locks',
    "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON locks.* TO app@'%'",
  );
});

async function makeTables(): Promise<void> {
  await using locks = createLocks(mysqlBackend({ uri: server.url }));
  await locks.lock('first').run(() => undefined);
}

async function asAdmin(...statements: string[]): Promise<void> {
  const connection = await mysql.createConnection({ uri: server.urlOf('admin') });
  for (const statement of statements) await connection.query(statement);
  await connection.end();
}

/** Changes a variable of the server for a while; only new connections have the new value. */
async function withVariable(name: string, value: string | number, work: () => Promise<void>): Promise<void> {
  const connection = await mysql.createConnection({ uri: server.urlOf('admin') });
  const [rows] = await connection.query<mysql.RowDataPacket[]>('SELECT @@global.?? AS value', [name]);
  const set = (to: unknown) => connection.query('SET GLOBAL ?? = ?', [name, to]);
  await set(value);
  try {
    await work();
  } finally {
    await set(rows[0]?.['value']);
    await connection.end();
  }
}

describe('locks doctor on MariaDB', () => {
  it('finds nothing where nothing is wrong', async () => {
    await makeTables();
    expect(await diagnose(server.url)).toEqual({
      store: 'mysql',
      version: expect.stringContaining('MariaDB') as string,
      findings: [],
    });
  });

  it('makes no tables where there are none yet', async () => {
    expect(severities(await diagnose(server.url))).toEqual({});
    await asAdmin('CREATE TABLE locks_locks (there_was_none INT)');
  });

  it('mysql/tables-missing: the user may not create the tables', async () => {
    await asAdmin("REVOKE CREATE ON locks.* FROM app@'%'");
    expect(severities(await diagnose(server.url))).toEqual({ 'mysql/tables-missing': 'error' });
  });

  it('mysql/privileges: the user may not write the tables', async () => {
    await makeTables();
    await asAdmin("REVOKE UPDATE ON locks.* FROM app@'%'");
    expect(severities(await diagnose(server.url))).toEqual({ 'mysql/privileges': 'error' });
  });

  it('mysql/schema-newer: a newer version made the tables', async () => {
    await makeTables();
    await asAdmin("UPDATE locks.locks_meta SET value = 99 WHERE item = 'version'");
    expect(severities(await diagnose(server.url))).toEqual({ 'mysql/schema-newer': 'error' });
  });

  it('mysql/version: the server is older than what locks need, or than what the tests ran on', async () => {
    await makeTables();
    expect(severities(await diagnoseNeeding('mariadb', '99.1', server.url))).toEqual({
      'mysql/version': 'error',
    });
    const { findings } = await diagnoseSupporting('mariadb', '99.1', server.url);
    expect(findings).toEqual([
      expect.objectContaining({
        id: 'mysql/version',
        severity: 'warning',
        toDo: 'upgrade the server to 99.1 or newer',
      }),
    ]);
    // As servers write it.
    expect(oldVersion('mysql', 'mariadb', '10.4.34-MariaDB')).toMatchObject({ severity: 'error' });
    expect(oldVersion('mysql', 'mariadb', '10.6.23-MariaDB')).toMatchObject({ severity: 'warning' });
    expect(oldVersion('mysql', 'mysql', '8.4.7')).toMatchObject({ severity: 'warning' });
  });

  it('mysql/trial: a table is not what this version made', async () => {
    await makeTables();
    await asAdmin('DROP TABLE locks.locks_locks');
    expect(severities(await diagnose(server.url))).toMatchObject({ 'mysql/trial': 'error' });
  });

  it.each([
    ['mysql/read-only', 'error', 'read_only', 1],
    ['mysql/durability', 'warning', 'innodb_flush_log_at_trx_commit', 2],
    ['mysql/max-allowed-packet', 'warning', 'max_allowed_packet', 65_536],
    ['mysql/wait-timeout', 'warning', 'wait_timeout', 30],
    ['mysql/isolation', 'warning', 'tx_isolation', 'READ-UNCOMMITTED'],
  ])('%s: %s with %s = %s', async (id, severity, variable, value) => {
    await makeTables();
    await withVariable(variable, value, async () => {
      expect(severities(await diagnose(server.url))).toEqual({ [id]: severity });
    });
  });

  it('mysql/connections: nearly all connections are in use', async () => {
    await withVariable('max_connections', 60, async () => {
      const connections = await Promise.all(
        Array.from({ length: 55 }, () => mysql.createConnection({ uri: server.url })),
      );
      expect(severities(await diagnose(server.url))).toEqual({ 'mysql/connections': 'warning' });
      await Promise.all(connections.map((connection) => connection.end()));
    });
  });

  it('mysql/clock: the clocks are apart', async () => {
    await makeTables();
    expect(severities(await diagnose(server.url, { clock: 'wrong' }))).toEqual({ 'mysql/clock': 'warning' });
  });
});
