import type { Pool, PoolConnection } from 'mysql2/promise';
import { describe, expect, it, onTestFinished } from 'vitest';
import { mysqlSlots } from '../src/index.ts';
import { call, freshPrefix, open, openPool, request, sql, take, until, useServer } from './fixture.ts';

useServer();

const POOLS = [1, 4] as const;

/** Returns a connection to its pool after these statements, as an application does that forgets to end its transaction. */
async function leak(pool: Pool, ...statements: string[]): Promise<PoolConnection> {
  const connection = await pool.getConnection();
  for (const statement of statements) await connection.query(statement);
  connection.release();
  return connection;
}

/** A table of the application. */
async function table(): Promise<string> {
  const name = `locks.${freshPrefix()}work`;
  await sql(`CREATE TABLE ${name} (done INT)`);
  return name;
}

/** The later end of the transaction; the connection may be closed by then. */
async function rollBack(connection: PoolConnection): Promise<void> {
  await connection.query('ROLLBACK').catch(() => undefined);
}

function warnings(): string[] {
  const codes: string[] = [];
  const note = (warning: Error & { code?: string }): void => void codes.push(warning.code ?? '');
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  return codes;
}

describe.each(POOLS)('an application that returns a connection to a pool of %i', (connectionLimit) => {
  it.each([
    ['an open transaction', ['BEGIN']],
    ['an open transaction with an old snapshot', ['START TRANSACTION WITH CONSISTENT SNAPSHOT']],
    ['a transaction that may only read', ['START TRANSACTION READ ONLY']],
    ['an XA transaction', ["XA START 'ours'"]],
    ['locked tables', ['LOCK TABLES <work> READ']],
  ])('with %s takes no lock back, and commits nothing of its work', async (_, [begin = '']) => {
    const codes = warnings();
    const tablePrefix = freshPrefix();
    // An application that locks tables has this right; locks need it not.
    if (begin.startsWith('LOCK TABLES')) await sql("GRANT LOCK TABLES ON locks.* TO app@'%'");
    const callbackPool = openPool({ connectionLimit });
    const pool = callbackPool.promise();
    const work = await table();
    const backend = open({ tablePrefix, pool: callbackPool });
    const plain = open({ tablePrefix });
    await backend.release(await take(backend, request('warm')), call);
    for (let at = 0; at < connectionLimit + 1; at += 1) {
      const statements = /BEGIN|SNAPSHOT|XA/.test(begin) ? [`INSERT INTO ${work} VALUES (1)`] : [];
      const connection = await leak(pool, begin.replace('<work>', work), ...statements);
      const grants = [];
      for (let other = 0; other < connectionLimit; other += 1)
        grants.push(await take(backend, request(`${at} ${other}`)));
      await rollBack(connection);
      for (const grant of grants) {
        const { holders } = await plain.inspect(grant.request.resource, call);
        expect(holders.map(({ acquisitionId }) => acquisitionId)).toEqual([grant.request.acquisitionId]);
        expect(await backend.release(grant, call)).toBe('released');
      }
    }
    expect(await sql(`SELECT * FROM ${work}`)).toEqual([]);
    expect(codes).toEqual(['LOCKS_OPEN_TRANSACTION']);
  });

  it('without autocommit and without COMMIT takes no lock back', async () => {
    const tablePrefix = freshPrefix();
    const callbackPool = openPool({ connectionLimit }, 'SET autocommit = 0');
    const pool = callbackPool.promise();
    const work = await table();
    const backend = open({ tablePrefix, pool: callbackPool });
    const plain = open({ tablePrefix });
    const connection = await leak(pool, `INSERT INTO ${work} VALUES (1)`);
    const grant = await take(backend, request('a'));
    await rollBack(connection);
    const { holders } = await plain.inspect('a', call);
    expect(holders.map(({ acquisitionId }) => acquisitionId)).toEqual([grant.request.acquisitionId]);
  });

  it.each(['', 'SET autocommit = 0'])(
    'keeps no entry of mysqlSlots back, and hides none: %j',
    async (onConnect) => {
      const tablePrefix = freshPrefix();
      const callbackPool = openPool({ connectionLimit }, ...(onConnect === '' ? [] : [onConnect]));
      const slots = mysqlSlots(callbackPool, { tablePrefix });
      const plain = mysqlSlots(openPool({}), { tablePrefix });
      const entry = { slot: '1', state: 'done', token: 1n, label: '', at: 0 } as const;
      const work = await table();
      await slots.read('a');
      const snapshot = ['START TRANSACTION WITH CONSISTENT SNAPSHOT', `INSERT INTO ${work} VALUES (1)`];
      await leak(callbackPool.promise(), ...snapshot);
      await plain.write('a', entry);
      for (let at = 0; at < connectionLimit; at += 1) expect((await slots.read('a')).entry).toEqual(entry);
      const connection = await leak(callbackPool.promise(), ...snapshot);
      for (let at = 0; at < connectionLimit; at += 1) expect(await slots.write(`b${at}`, entry)).toBe(true);
      await rollBack(connection);
      for (let at = 0; at < connectionLimit; at += 1)
        expect((await plain.read(`b${at}`)).entry).toEqual(entry);
      // The server undoes the transaction when it notices that the connection has ended.
      expect(await until(async () => (await sql(`SELECT * FROM ${work}`)).length === 0)).toBe(true);
    },
  );
});
