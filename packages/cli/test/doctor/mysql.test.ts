import { createLocks } from '@locks/core';
import { mysqlBackend } from '@locks/mysql';
import { freePort, type MariadbServer, startMariadb } from '@locks/test-servers';
import mysql from 'mysql2/promise';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { diagnose, severities } from './diagnose.ts';

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
  await using locks = createLocks(mysqlBackend(server.url));
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

  it.each([0, 99])('mysql/layout: another version, %d, made the tables', async (version) => {
    await makeTables();
    await asAdmin(`UPDATE locks.locks_meta SET value = ${version} WHERE item = 'version'`);
    expect(severities(await diagnose(server.url))).toEqual({ 'mysql/layout': 'error' });
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

  it('mysql/galera: the server is a node of a Galera cluster', async () => {
    const [listen, receive] = [await freePort(), await freePort()];
    const node = await startMariadb({
      args: [
        '--innodb-flush-log-at-trx-commit=1',
        '--wsrep-on=ON',
        // The package `mariadb-server` of Debian brings it.
        '--wsrep-provider=/usr/lib/galera/libgalera_smm.so',
        '--wsrep-cluster-address=gcomm://',
        '--wsrep-node-address=127.0.0.1',
        `--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:${listen};ist.recv_addr=127.0.0.1:${receive}`,
        '--binlog-format=ROW',
      ],
    });
    try {
      expect(severities(await diagnose(node.url))).toEqual({ 'mysql/galera': 'warning' });
    } finally {
      await node.stop();
    }
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
