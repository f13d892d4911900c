import { type MariadbServer, startMariadb } from '@locks/test-servers';
import mysql from 'mysql2/promise';
import { afterEach, describe, expect, it } from 'vitest';
import { locks } from '../program.ts';
import { diagnose, severities } from './diagnose.ts';

const started: MariadbServer[] = [];

afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => server.stop()));
});

async function startEmpty(...args: string[]): Promise<MariadbServer> {
  const server = await startMariadb({ args: ['--innodb-flush-log-at-trx-commit=1', ...args] });
  started.push(server);
  return server;
}

/** A server that loses nothing, with the tables of the locks. */
async function start(...args: string[]): Promise<MariadbServer> {
  const server = await startEmpty(...args);
  expect(await locks(server.url, 'run', 'first', '--', 'true')).toMatchObject({ code: 0 });
  return server;
}

async function asAdmin(server: MariadbServer, ...statements: string[]): Promise<void> {
  const connection = await mysql.createConnection({ uri: server.urlOf('admin') });
  for (const statement of statements) await connection.query(statement);
  await connection.end();
}

describe('locks doctor on MariaDB', () => {
  it('finds nothing where nothing is wrong', async () => {
    const server = await start();
    expect(await diagnose(server.url)).toEqual({
      store: 'mysql',
      version: expect.stringContaining('MariaDB') as string,
      findings: [],
    });
  });

  it('makes no tables where there are none yet', async () => {
    const server = await startEmpty();
    expect(severities(await diagnose(server.url))).toEqual({});
    await asAdmin(server, 'CREATE TABLE locks_locks (there_was_none INT)');
  });

  it('mysql/tables-missing: the user may not create the tables', async () => {
    const server = await startEmpty();
    await asAdmin(server, "REVOKE CREATE ON locks.* FROM app@'%'");
    expect(severities(await diagnose(server.url))).toEqual({ 'mysql/tables-missing': 'error' });
  });

  it('mysql/privileges: the user may not write the tables', async () => {
    const server = await start();
    await asAdmin(server, "REVOKE UPDATE ON locks.* FROM app@'%'");
    expect(severities(await diagnose(server.url))).toEqual({ 'mysql/privileges': 'error' });
  });

  it('mysql/schema-newer: a newer version made the tables', async () => {
    const server = await start();
    await asAdmin(server, "UPDATE locks.locks_meta SET value = 99 WHERE item = 'version'");
    expect(severities(await diagnose(server.url))).toEqual({ 'mysql/schema-newer': 'error' });
  });

  it('mysql/version: the server says that it is older than what locks need', async () => {
    const server = await start('--version=10.4.34-MariaDB');
    expect(severities(await diagnose(server.url))).toMatchObject({ 'mysql/version': 'error' });
  });

  it.each([
    ['10.6.23-MariaDB', '10.11'],
    ['8.4.7', '9.7'],
  ])('mysql/version: the server says that it is %s, which no test ran on', async (version, supported) => {
    const server = await start(`--version=${version}`);
    const { findings } = await diagnose(server.url);
    expect(findings).toContainEqual(
      expect.objectContaining({
        id: 'mysql/version',
        severity: 'warning',
        toDo: `upgrade the server to ${supported} or newer`,
      }),
    );
  });

  it('mysql/trial: a table is not what this version made', async () => {
    const server = await start();
    await asAdmin(server, 'DROP TABLE locks.locks_locks');
    expect(severities(await diagnose(server.url))).toMatchObject({ 'mysql/trial': 'error' });
  });

  it('mysql/read-only: the server refuses to write', async () => {
    const server = await start();
    await asAdmin(server, 'SET GLOBAL read_only = 1');
    expect(severities(await diagnose(server.url))).toEqual({ 'mysql/read-only': 'error' });
  });

  it.each([
    ['mysql/durability', '--innodb-flush-log-at-trx-commit=2'],
    ['mysql/max-allowed-packet', '--max-allowed-packet=64K'],
    ['mysql/wait-timeout', '--wait-timeout=30'],
    ['mysql/isolation', '--transaction-isolation=READ-UNCOMMITTED'],
  ])('%s: %s', async (id, arg) => {
    const server = await start(arg);
    expect(severities(await diagnose(server.url))).toEqual({ [id]: 'warning' });
  });

  it('mysql/connections: nearly all connections are in use', async () => {
    const server = await startEmpty('--max-connections=60');
    const connections = await Promise.all(
      Array.from({ length: 56 }, () => mysql.createConnection({ uri: server.url })),
    );
    expect(severities(await diagnose(server.url))).toEqual({ 'mysql/connections': 'warning' });
    for (const connection of connections) connection.destroy();
  });

  it('mysql/clock: the clocks are apart', async () => {
    const server = await start();
    expect(severities(await diagnose(server.url, { clock: 'wrong' }))).toEqual({ 'mysql/clock': 'warning' });
  });
});
