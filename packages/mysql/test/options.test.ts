import { isLockError } from '@locks/core';
import mysql from 'mysql2';
import promises from 'mysql2/promise';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type MysqlBackendOptions, mysqlBackend } from '../src/index.ts';

const nowhere = 'mysql://nobody@127.0.0.1:1/none';

function refused(options: unknown): string {
  try {
    mysqlBackend(options as MysqlBackendOptions);
  } catch (error) {
    if (isLockError(error, 'LOCK_INVALID_ARGUMENT')) return error.message;
    throw error;
  }
  return expect.fail('it was accepted');
}

describe('mysqlBackend()', () => {
  it('takes a pool of mysql2, one of mysql2/promise, or a URI, and does no I/O', async () => {
    const [callbacks, promised] = [mysql.createPool(nowhere), promises.createPool(nowhere)];
    onTestFinished(() => promised.end());
    onTestFinished(() => callbacks.promise().end());
    for (const options of [{ pool: callbacks }, { pool: promised }, { uri: nowhere }]) {
      const backend = mysqlBackend(options);
      expect(backend).toMatchObject({ spec: 'locks-backend/1', name: 'mysql' });
      await backend.close();
      await backend.close();
    }
  });

  it.each([
    ['no object', undefined],
    ['neither pool nor URI', {}],
    ['both', { pool: 1, uri: nowhere }],
    ['a text as pool', { pool: nowhere }],
    ['null', { pool: null }],
    ['an object without methods', { pool: {} }],
    ['a pool of the old package', { pool: { getConnection() {}, query() {}, end() {} } }],
    ['a URI of another database', { uri: 'postgres://localhost/x' }],
    ['a bad URI', { uri: 'localhost' }],
    ['an unknown option', { uri: nowhere, prefix: 'x' }],
    ['a prefix that would need quotes', { uri: nowhere, tablePrefix: 'a`b' }],
    ['a prefix that is too long', { uri: nowhere, tablePrefix: 'x'.repeat(49) }],
    ['a database with a backquote', { uri: nowhere, database: 'a`b' }],
    ['a pause that is too long', { uri: nowhere, maxPollMs: 5_000 }],
    ['a limit that is no number', { uri: nowhere, statementTimeoutMs: Number.NaN }],
    ['a createTables that is no boolean', { uri: nowhere, createTables: 1 }],
  ])('refuses %s, and says what is allowed', (_, options) => {
    expect(refused(options)).toMatch(/^mysqlBackend\(\).*(must be|takes either|has no option)/);
  });

  it('refuses a single connection and a cluster of pools', () => {
    const cluster = mysql.createPoolCluster();
    expect(refused({ pool: cluster })).toContain('createPool()');
    const connection = mysql.createConnection({ uri: nowhere });
    connection.on('error', () => undefined);
    expect(refused({ pool: connection })).toContain('createPool()');
    connection.destroy();
  });

  it('does not repeat a password', () => {
    expect(refused({ uri: 'postgres://user:secret@localhost/x' })).not.toContain('secret');
  });
});
