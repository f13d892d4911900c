import { createLocks } from '@locks/core';
import { createPool } from 'mysql2';
import { expect, it, onTestFinished } from 'vitest';
import { examineMysql } from '../src/doctor.ts';
import { mysqlBackend } from '../src/index.ts';
import { SERVER_VERSIONS } from '../src/server-versions.ts';
import { theServer, useServer } from './fixture.ts';

useServer();

it('examines the server through a pool of the application, whatever its settings are, and leaves it open', async () => {
  const pool = createPool({ uri: theServer().url, connectionLimit: 1, rowsAsArray: true, nestTables: true });
  onTestFinished(() => pool.promise().end());
  const tablePrefix = 'examined_';
  const unused = await examineMysql(pool, { tablePrefix });
  expect(unused).toMatchObject({ store: 'mysql', isUnused: true });
  expect(unused.findings.filter(({ severity }) => severity === 'error')).toEqual([]);
  await using locks = createLocks(mysqlBackend(pool, { tablePrefix }));
  await locks.lock('first').run(() => undefined);
  expect(await examineMysql(pool.promise(), { tablePrefix })).toEqual({ ...unused, isUnused: false });
  const database = new URL(theServer().url).pathname.slice(1);
  expect(await examineMysql(pool, { tablePrefix, database })).toMatchObject({ isUnused: false });
  expect(await examineMysql(pool, { tablePrefix, database: 'another' })).toMatchObject({ isUnused: true });
});

it('mysql/version: the server is older than what locks need, or than what the tests ran on', async () => {
  const ages = async (oldest: string, tested: string): Promise<unknown> => {
    const { mariadb } = SERVER_VERSIONS;
    SERVER_VERSIONS.mariadb = { oldest, tested };
    try {
      const { findings } = await examineMysql(theServer().url);
      return findings.filter(({ id }) => id === 'mysql/version').map(({ severity }) => severity);
    } finally {
      SERVER_VERSIONS.mariadb = mariadb;
    }
  };
  expect(await ages('99.1', '99.1')).toEqual(['error']);
  expect(await ages('10.5', '99.1')).toEqual(['warning']);
  expect(await ages('10.5', '10.5')).toEqual([]);
});
