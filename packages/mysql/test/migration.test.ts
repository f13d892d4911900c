import { createHash } from 'node:crypto';
import { createPool } from 'mysql2';
import { createConnection } from 'mysql2/promise';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createLocks } from '@locks/core';
import { mysqlSlots, schemaStatements } from '../src/index.ts';
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

  it.each([
    ['a newer', 2, 'NEWER_SCHEMA', 'Upgrade this process'],
    ['an older', 0, 'OLDER_SCHEMA', 'Stop all processes of the older version'],
  ])('of %s version are refused with what to do, and not touched', async (_, version, code, toDo) => {
    const tablePrefix = freshPrefix();
    await take(open({ tablePrefix }), request('a'));
    await sql(`UPDATE locks.${tablePrefix}meta SET value = ${version} WHERE item = 'version'`);
    await expect(open({ tablePrefix }).attempt(request('b'), false, call)).rejects.toMatchObject({
      name: 'StoreLayoutError',
      code,
      message: expect.stringContaining(toDo),
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
    const url = theServer().url.replace('app@', 'modest@');
    const backend = open({ tablePrefix, url, autoPrepare: false });
    const grant = await take(backend, request('a'));
    expect(await backend.release(grant, call)).toBe('released');
  });

  it('are prepared by a user who may create, for an application and its record that may not', async () => {
    const tablePrefix = freshPrefix();
    await sql("CREATE USER IF NOT EXISTS modest@'%'");
    await sql("GRANT SELECT, INSERT, UPDATE, DELETE ON locks.* TO modest@'%'");
    const url = theServer().url.replace('app@', 'modest@');
    const locks = createLocks(open({ tablePrefix, url, autoPrepare: false }));
    await expect(locks.prepare()).rejects.toMatchObject({
      code: 'LOCK_BACKEND',
      message: expect.stringMatching(/CREATE command denied to user 'modest'/),
    });
    const owners = Array.from({ length: 5 }, () => createLocks(open({ tablePrefix, autoPrepare: false })));
    await Promise.all(owners.map((owner) => owner.prepare()));
    await locks.lock('a').run((lease) => lease.assertValid());
    const pool = openPool({ user: 'modest' });
    expect(await mysqlSlots(pool, { tablePrefix }).read('a')).toMatchObject({ entry: undefined });
    // What is there needs no right to create.
    await locks.prepare();
  });

  it('that another client is making are waited for by prepare() until the manager is closed', async () => {
    const tablePrefix = freshPrefix();
    const other = await createConnection(theServer().url);
    onTestFinished(() => other.destroy());
    await other.query(lockOf(tablePrefix));
    const locks = createLocks(open({ tablePrefix, requestTimeoutMs: 500 }));
    const preparing = locks.prepare();
    const closed = createLocks(open({ tablePrefix, requestTimeoutMs: 500 }));
    const ended = expect(closed.prepare()).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
    // Longer than one statement may take: the wait goes on.
    await until(() =>
      sql("SELECT 1 FROM information_schema.processlist WHERE state LIKE 'User lock%' AND time_ms > 300"),
    );
    await closed.close();
    await ended;
    other.destroy();
    await preparing;
  });

  it('that are missing are reported, with autoPrepare: false', async () => {
    const backend = open({ tablePrefix: freshPrefix(), autoPrepare: false });
    const attempt = backend.attempt(request('a'), false, call);
    await expect(attempt).rejects.toMatchObject({ message: expect.stringContaining('call prepare()') });
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
    const other = await createConnection(theServer().url);
    onTestFinished(() => other.destroy());
    const [rows] = await other.query(lockOf(tablePrefix));
    expect(rows).toEqual([{ got: 1 }]);
    const backend = open({ tablePrefix, requestTimeoutMs: 500 });
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

/** Takes the user lock of a migration. */
function lockOf(tablePrefix: string): string {
  return `SELECT GET_LOCK(CONCAT('locks ', LEFT(SHA1(CONCAT('locks ', '${sha256(`\`${tablePrefix}locks\``)}')), 40)), 0) AS got`;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 40);
}
