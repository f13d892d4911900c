import { PGlite } from '@electric-sql/pglite';
import type { ResultStore } from '@locks/core/backend';
import { type PostgresServer, startPostgres } from '@locks/test-servers';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { postgresResults, type SqlClient } from '../src/index.ts';

let server: PostgresServer;
let pool: pg.Pool;

beforeAll(async () => {
  server = await startPostgres();
  pool = new pg.Pool({ connectionString: server.url });
});
afterAll(async () => {
  await pool.end();
  await server.stop();
});

/** A token beyond what a number holds exactly. */
const TOKEN = 2n ** 62n + 1n;

async function keepsTheNewest(results: ResultStore): Promise<void> {
  expect(await results.get('prices')).toBeUndefined();
  await results.set('prices', 'é', TOKEN, 60_000);
  await expect(results.set('prices', 'late', TOKEN - 1n, 60_000)).rejects.toMatchObject({
    code: 'LOCK_LOST',
    reason: 'taken-over',
  });
  expect(await results.get('prices')).toBe('é');
  expect(await results.get('rates')).toBeUndefined();
  await results.set('prices', 'again', TOKEN, 60_000);
  expect(await results.get('prices')).toBe('again');
}

describe('postgresResults', () => {
  it('keeps the newest result of each key, by whatever client', async () => {
    const sql = postgres(server.url, { onnotice: () => undefined });
    const lite = await PGlite.create();
    const clients: [string, SqlClient][] = [
      ['pg', pool],
      ['postgres_js', sql as unknown as SqlClient],
      ['executor', async (text, values) => pool.query(text, [...values])],
      ['pglite', lite as unknown as SqlClient],
    ];
    for (const [schema, client] of clients) await keepsTheNewest(postgresResults(client, { schema }));
    await Promise.all([sql.end(), lite.close()]);
  });

  it('keeps apart keys with U+0000, and keeps it in results', async () => {
    const results = postgresResults(pool, { schema: 'nul' });
    const keys = ['a\0b', 'ab', 'a\u00010b', 'a\u0001b'];
    for (const key of keys) {
      expect(await results.get(key)).toBeUndefined();
      await results.set(key, `of ${key}`, 1n, 60_000);
    }
    expect(await Promise.all(keys.map((key) => results.get(key)))).toEqual(keys.map((key) => `of ${key}`));
  });

  it('makes its table once, where many processes ask at the same time', async () => {
    const all = Array.from({ length: 20 }, () => postgresResults(pool, { schema: 'together' }));
    expect(await Promise.all(all.map((results) => results.get('a')))).toEqual(all.map(() => undefined));
    const written = all.map((results, at) => results.set('a', `${at}`, BigInt(at + 1), 60_000));
    await Promise.allSettled(written);
    expect(await all[0]?.get('a')).toBe('19');
  });

  it('removes results that ended an hour ago with later writes, and keeps the tokens of others', async () => {
    const results = postgresResults(pool, { schema: 'swept' });
    expect(await results.get('a')).toBeUndefined();
    await pool.query(
      "INSERT INTO swept.shared_results SELECT 'old ' || n, 'x', 1, now() - INTERVAL '61 minutes' FROM generate_series(1, 15) n",
    );
    await pool.query(
      "INSERT INTO swept.shared_results VALUES ('ended', 'x', 7, now() - INTERVAL '59 minutes')",
    );
    const keys = async () => {
      const { rows } = await pool.query<{ key: string }>('SELECT key FROM swept.shared_results');
      return rows.map(({ key }) => key).filter((key) => key.startsWith('old')).length;
    };
    // The row that a write replaces may be old itself.
    await results.set('old 1', 'new', 2n, 60_000);
    expect(await keys()).toBe(5);
    await results.set('b', 'x', 1n, 60_000);
    expect(await keys()).toBe(1);
    expect(await results.get('old 1')).toBe('new');
    expect(await results.get('ended')).toBeUndefined();
    await expect(results.set('ended', 'late', 6n, 60_000)).rejects.toMatchObject({ code: 'LOCK_LOST' });
  });

  it('is refused a bad client and a bad option', () => {
    expect(() => postgresResults({} as unknown as SqlClient)).toThrow('postgresResults()');
    expect(() => postgresResults(pool, { scheme: 'a' } as object)).toThrow('scheme');
  });
});
