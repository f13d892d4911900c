import { createLocks } from '@locks/core';
import { startPostgres } from '@locks/test-servers';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  advisoryLockInTransaction,
  postgresAdvisoryBackend,
  postgresLeaseBackend,
  type SqlExecutor,
  tryAdvisoryLockInTransaction,
} from '../src/index.ts';

let server: Awaited<ReturnType<typeof startPostgres>>;
let names = 0;
const freshName = (): string => `transaction ${(names += 1)}`;

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

async function client(): Promise<pg.Client & AsyncDisposable> {
  const opened = new pg.Client({ connectionString: server.url });
  await opened.connect();
  return Object.assign(opened, { [Symbol.asyncDispose]: () => opened.end() });
}

async function lockTimeout(of: pg.Client): Promise<string> {
  const { rows } = await of.query<{ lock_timeout: string }>('SHOW lock_timeout');
  return rows[0]?.lock_timeout ?? '';
}

describe.concurrent('a lock for a transaction', () => {
  it('ends with the transaction, committed or rolled back', async () => {
    const name = freshName();
    await using mine = await client();
    await using other = await client();
    await other.query('BEGIN');
    for (const end of ['COMMIT', 'ROLLBACK']) {
      await mine.query('BEGIN');
      await advisoryLockInTransaction(mine, name);
      expect(await tryAdvisoryLockInTransaction(other, name)).toBe(false);
      await mine.query(end);
      expect(await tryAdvisoryLockInTransaction(other, name)).toBe(true);
      await other.query('COMMIT; BEGIN');
    }
  });

  it('excludes the leases of the advisory backend, and is excluded by them, in both modes', async () => {
    const name = freshName();
    await using mine = await client();
    await using locks = createLocks(postgresAdvisoryBackend(server.url));
    const { read, write } = locks.readWriteLock(name);
    await mine.query('BEGIN');
    await advisoryLockInTransaction(mine, name, { mode: 'shared' });
    expect(await write.tryAcquire()).toBeUndefined();
    const reader = await read.tryAcquire();
    expect(reader).toBeDefined();
    expect(await tryAdvisoryLockInTransaction(mine, name)).toBe(false);
    await mine.query('COMMIT; BEGIN');
    expect(await tryAdvisoryLockInTransaction(mine, name)).toBe(false);
    await reader?.release();
    await using writer = await write.acquire({ waitMs: 2_000 });
    expect(await tryAdvisoryLockInTransaction(mine, name, { mode: 'shared' })).toBe(false);
    await writer.release();
    expect(await tryAdvisoryLockInTransaction(mine, name)).toBe(true);
    expect((await locks.inspect(name)).holders).toMatchObject([{ mode: { kind: 'exclusive' } }]);
    await mine.query('COMMIT');
  });

  it.each(['locks', 'Other-schema'])(
    'is refused while a lease table, here in the schema %s, has the name: the two do not exclude each other',
    async (schema) => {
      const name = `${freshName()} \0 ' " \\ ä`;
      await using mine = await client();
      await using locks = createLocks(postgresLeaseBackend(server.url, { schema }));
      await using lease = await locks.lock(name).acquire();
      await mine.query('BEGIN');
      await expect(advisoryLockInTransaction(mine, name)).rejects.toMatchObject({ code: 'LOCK_CONFLICT' });
      await expect(tryAdvisoryLockInTransaction(mine, name)).rejects.toMatchObject({ code: 'LOCK_CONFLICT' });
      expect(
        (await mine.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"))
          .rows,
      ).toEqual([]);
      await advisoryLockInTransaction(mine, `${name}, another`);
      await lease.release();
      await advisoryLockInTransaction(mine, name);
      await mine.query('COMMIT');
    },
  );

  it('waits, and is granted when the other transaction ends', async () => {
    const name = freshName();
    await using first = await client();
    await using second = await client();
    await first.query('BEGIN');
    await second.query('BEGIN');
    await advisoryLockInTransaction(first, name);
    const waiting = advisoryLockInTransaction(second, name, { waitMs: Number.POSITIVE_INFINITY });
    await first.query('COMMIT');
    await waiting;
    await second.query('COMMIT');
  });

  it('gives up after waitMs with LOCK_TIMEOUT, and the transaction goes on, its lock_timeout unchanged', async () => {
    const name = freshName();
    await using holder = await client();
    await using waiter = await client();
    await holder.query('BEGIN');
    await advisoryLockInTransaction(holder, name);
    await waiter.query("SET lock_timeout = '7s'; CREATE TEMP TABLE notes (text text); BEGIN");
    await waiter.query("INSERT INTO notes VALUES ('before')");
    const startedAt = performance.now();
    await expect(advisoryLockInTransaction(waiter, name, { waitMs: 150 })).rejects.toMatchObject({
      code: 'LOCK_TIMEOUT',
      lockName: name,
    });
    expect(performance.now() - startedAt).toBeGreaterThan(140);
    expect(await lockTimeout(waiter)).toBe('7s');
    await waiter.query("INSERT INTO notes VALUES ('after')");
    await holder.query('COMMIT');
    await advisoryLockInTransaction(waiter, name, { waitMs: 5_000 });
    expect(await lockTimeout(waiter)).toBe('7s');
    await waiter.query('COMMIT');
    expect((await waiter.query('SELECT * FROM notes')).rowCount).toBe(2);
    expect(await lockTimeout(waiter)).toBe('7s');
  });

  it('is refused outside of a transaction, and leaves nothing locked', async () => {
    const name = freshName();
    await using mine = await client();
    const pool = new pg.Pool({ connectionString: server.url });
    for (const on of [mine, pool]) {
      await expect(advisoryLockInTransaction(on, name)).rejects.toMatchObject({
        code: 'LOCK_INVALID_ARGUMENT',
      });
      await expect(tryAdvisoryLockInTransaction(on, name)).rejects.toMatchObject({
        code: 'LOCK_INVALID_ARGUMENT',
      });
    }
    await pool.end();
    await mine.query('BEGIN');
    expect(await tryAdvisoryLockInTransaction(mine, name)).toBe(true);
    await mine.query('COMMIT');
  });

  it('reports a statement_timeout and a failed transaction as LOCK_BACKEND', async () => {
    const name = freshName();
    await using holder = await client();
    await using waiter = await client();
    await holder.query('BEGIN');
    await advisoryLockInTransaction(holder, name);
    await waiter.query("SET statement_timeout = '100ms'; BEGIN");
    await expect(advisoryLockInTransaction(waiter, name)).rejects.toMatchObject({
      code: 'LOCK_BACKEND',
      cause: { code: '57014' },
    });
    await expect(waiter.query('SELECT 1')).resolves.toBeDefined();
    await waiter.query('SELECT 1/0').catch(() => undefined);
    await expect(advisoryLockInTransaction(waiter, name)).rejects.toMatchObject({
      code: 'LOCK_BACKEND',
      cause: { code: '25P02' },
    });
  });

  it('refuses bad names and options', async () => {
    await using mine = await client();
    await mine.query('BEGIN');
    for (const name of ['', '\ud800', 'x'.repeat(513), 7 as unknown as string]) {
      await expect(advisoryLockInTransaction(mine, name)).rejects.toMatchObject({
        code: 'LOCK_INVALID_ARGUMENT',
      });
    }
    for (const options of [{ waitMs: 0 }, { waitMs: Number.NaN }, { mode: 'permit' as 'shared' }]) {
      await expect(advisoryLockInTransaction(mine, 'a', options)).rejects.toMatchObject({
        code: 'LOCK_INVALID_ARGUMENT',
      });
    }
  });

  it('takes a function that runs statements one by one; none of them fails, also where the lock does', async () => {
    const name = freshName();
    await using holder = await client();
    await using mine = await client();
    const failed: unknown[] = [];
    const executor: SqlExecutor = async (text, values) => {
      // As a prepared statement, which holds one command only.
      const { rows } = await mine.query({ name: '', text, values: [...values] }).catch((error: unknown) => {
        failed.push(error);
        throw error;
      });
      return rows;
    };
    await holder.query('BEGIN');
    await mine.query('BEGIN');
    await advisoryLockInTransaction(holder, name);
    expect(await tryAdvisoryLockInTransaction(executor, name)).toBe(false);
    await expect(advisoryLockInTransaction(executor, name, { waitMs: 20 })).rejects.toMatchObject({
      code: 'LOCK_TIMEOUT',
      cause: { code: '55P03' },
    });
    await holder.query('COMMIT');
    await advisoryLockInTransaction(executor, name);
    await mine.query('COMMIT');
    await expect(advisoryLockInTransaction(executor, name)).rejects.toMatchObject({
      code: 'LOCK_INVALID_ARGUMENT',
    });
    expect(failed).toEqual([]);
  });

  it('refuses what runs no statements, and what gives no rows', async () => {
    const knexLike = Object.assign(() => Promise.resolve([]), { raw: () => Promise.resolve({ rows: [] }) });
    for (const wrong of [
      null,
      undefined,
      'BEGIN',
      {},
      { execute() {} },
      knexLike,
      async () => 7,
      async () => ({}),
    ]) {
      await expect(advisoryLockInTransaction(wrong as never, 'a')).rejects.toMatchObject({
        code: 'LOCK_INVALID_ARGUMENT',
        message: expect.stringContaining('advisoryLockInTransaction()'),
      });
    }
  });
});
