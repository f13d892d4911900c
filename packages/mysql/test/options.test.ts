import { isLockError } from '@locks/core';
import mysql from 'mysql2';
import promises from 'mysql2/promise';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type MysqlBackendOptions, mysqlBackend } from '../src/index.ts';

const nowhere = 'mysql://nobody@127.0.0.1:1/none';

function refused(source: unknown, options?: unknown): string {
  try {
    mysqlBackend(source as string, options as MysqlBackendOptions);
  } catch (error) {
    if (isLockError(error, 'LOCK_INVALID_ARGUMENT')) return error.message;
    throw error;
  }
  return expect.fail('it was accepted');
}

describe('mysqlBackend()', () => {
  it('takes a pool of mysql2, one of mysql2/promise, or a URL, and does no I/O', async () => {
    const [callbacks, promised] = [mysql.createPool(nowhere), promises.createPool(nowhere)];
    onTestFinished(() => promised.end());
    onTestFinished(() => callbacks.promise().end());
    for (const source of [callbacks, promised, nowhere]) {
      const backend = mysqlBackend(source);
      expect(backend).toMatchObject({ spec: 'locks-backend/1', name: 'mysql' });
      await backend.close();
      await backend.close();
    }
  });

  it.each<[string, unknown, unknown?]>([
    ['nothing', undefined],
    ['null', null],
    ['an object without methods', {}],
    ['options in the place of the pool', { tablePrefix: 'x' }],
    ['a pool in an object', { pool: mysql.createPool(nowhere) }],
    ['a pool of the old package', { getConnection() {}, query() {}, end() {} }],
    ['a URL of another database', 'postgres://localhost/x'],
    ['a bad URL', 'localhost'],
    ['an unknown option', nowhere, { prefix: 'x' }],
    ['the old name of the URL', nowhere, { uri: nowhere }],
    ['null as the options', nowhere, null],
    ['a prefix that would need quotes', nowhere, { tablePrefix: 'a`b' }],
    ['a prefix that is too long', nowhere, { tablePrefix: 'x'.repeat(49) }],
    ['a database with a backquote', nowhere, { database: 'a`b' }],
    ['a pause that is too long', nowhere, { maxPollMs: 5_000 }],
    ['a limit that is no number', nowhere, { requestTimeoutMs: Number.NaN }],
    ['an autoPrepare that is no boolean', nowhere, { autoPrepare: 1 }],
    ['the old name of autoPrepare', nowhere, { createTables: false }],
  ])('refuses %s, and says what is allowed', (_, source, options) => {
    expect(refused(source, options)).toMatch(/^mysqlBackend\(\).*(must be|has no option)/);
  });

  it('says what comes first', () => {
    expect(refused({ tablePrefix: 'x' })).toContain('mysqlBackend(pool, { … })');
    expect(refused(nowhere, { pool: 1 })).toContain('the first argument');
  });

  it('refuses a single connection and a cluster of pools', () => {
    const cluster = mysql.createPoolCluster();
    expect(refused(cluster)).toContain('createPool()');
    const connection = mysql.createConnection({ uri: nowhere });
    connection.on('error', () => undefined);
    expect(refused(connection)).toContain('createPool()');
    connection.destroy();
  });

  it('does not repeat a password', () => {
    expect(refused('postgres://user:secret@localhost/x')).not.toContain('secret');
  });
});
