import { createHash } from 'node:crypto';
import { createPool } from 'mysql2';
import { createConnection } from 'mysql2/promise';
import { describe, expect, it, onTestFinished } from 'vitest';
import { schemaStatements } from '../src/index.ts';
import {
  call,
  freshPrefix,
  open,
  openPool,
  request,
  sql,
  take,
  theServer,
  until,
  useServer,
} from './fixture.ts';

useServer();

describe('the tables', () => {
  it('are made by twenty backends at once, once', async () => {
    const tablePrefix = freshPrefix();
    const backends = Array.from({ length: 20 }, () =>
      open({ tablePrefix, pool: openPool({ connectionLimit: 2 }) }),
    );
    const attempts = await Promise.all(backends.map((backend) => backend.attempt(request('a'), false, call)));
    expect(attempts.filter(({ status }) => status === 'granted')).toHaveLength(1);
    expect(await sql(`SELECT value FROM locks.${tablePrefix}meta WHERE item = 'version'`)).toEqual([
      { value: 1 },
    ]);
  });

  it('of a newer version are refused with what to do, and not touched', async () => {
    const tablePrefix = freshPrefix();
    await take(open({ tablePrefix }), request('a'));
    await sql(`UPDATE locks.${tablePrefix}meta SET value = 2 WHERE item = 'version'`);
    await expect(open({ tablePrefix }).attempt(request('b'), false, call)).rejects.toMatchObject({
      code: 'LOCK_UNSUPPORTED',
      message: expect.stringContaining('upgrade @locks/mysql'),
    });
    expect(await sql(`SELECT COUNT(*) AS n FROM locks.${tablePrefix}locks`)).toEqual([{ n: 1 }]);
  });

  it('that somebody made half are completed', async () => {
    const tablePrefix = freshPrefix();
    const [locks, , meta] = schemaStatements({ tablePrefix, database: 'locks' });
    await sql(locks as string);
    await sql(meta as string);
    await take(open({ tablePrefix }), request('a'));
  });

  it('need no right to create anything when somebody else has made them', async () => {
    const tablePrefix = freshPrefix();
    for (const statement of schemaStatements({ tablePrefix, database: 'locks' })) await sql(statement);
    await sql("CREATE USER IF NOT EXISTS modest@'%'");
    await sql("GRANT SELECT, INSERT, UPDATE, DELETE ON locks.* TO modest@'%'");
    const uri = theServer().url.replace('app@', 'modest@');
    const backend = open({ tablePrefix, uri, createTables: false });
    const grant = await take(backend, request('a'));
    expect(await backend.release(grant, call)).toBe('released');
  });

  it('that are missing are reported, with createTables: false', async () => {
    const backend = open({ tablePrefix: freshPrefix(), createTables: false });
    const attempt = backend.attempt(request('a'), false, call);
    await expect(attempt).rejects.toMatchObject({ message: expect.stringContaining('schemaStatements()') });
  });

  it('that were dropped are made again', async () => {
    const tablePrefix = freshPrefix();
    const backend = open({ tablePrefix });
    const grant = await take(backend, request('a'));
    await backend.release(grant, call);
    await sql(`DROP TABLE locks.${tablePrefix}locks, locks.${tablePrefix}meta`);
    const lost = await backend.attempt(request('a'), false, call).catch((error: unknown) => error);
    expect(backend.isRetryable(lost)).toBe(true);
    const again = await take(backend, request('a'));
    expect(again.fencingToken).toBeGreaterThan(grant.fencingToken as bigint);
  });

  it('that another client is making are waited for, and the error says so', async () => {
    const tablePrefix = freshPrefix();
    const lock = `SELECT GET_LOCK(CONCAT('locks ', LEFT(SHA1(CONCAT('locks ', '${sha256(`\`${tablePrefix}locks\``)}')), 40)), 0) AS got`;
    const other = await createConnection(theServer().url);
    onTestFinished(() => other.destroy());
    const [rows] = await other.query(lock);
    expect(rows).toEqual([{ got: 1 }]);
    const backend = open({ tablePrefix, statementTimeoutMs: 500 });
    const startedAt = performance.now();
    const refused: unknown = await backend
      .attempt(request('a'), false, call)
      .catch((error: unknown) => error);
    expect(performance.now() - startedAt).toBeGreaterThan(350);
    expect(refused).toMatchObject({ code: 'NOT_MIGRATED', message: expect.stringContaining('for 0.4 s') });
    expect(backend.isRetryable(refused)).toBe(true);
    other.destroy();
    await until(() => take(backend, request('a')).catch(() => undefined));
  });

  it('stand in the database that was named', async () => {
    const url = new URL(theServer().url);
    url.pathname = '';
    const pool = createPool({ uri: url.href });
    onTestFinished(() => pool.promise().end());
    const tablePrefix = freshPrefix();
    await take(open({ tablePrefix, pool, database: 'locks' }), request('a'));
    expect(await sql(`SELECT COUNT(*) AS n FROM locks.${tablePrefix}locks`)).toEqual([{ n: 1 }]);
  });
});

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 40);
}
