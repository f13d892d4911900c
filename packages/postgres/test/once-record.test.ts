import type { OnceRecord, SlotEntry } from '@locks/core/backend';
import { PGlite } from '@electric-sql/pglite';
import { type PostgresServer, startPostgres } from '@locks/test-servers';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { postgresRecord, type SqlClient } from '../src/index.ts';

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
const entry = (token: bigint): SlotEntry => ({
  ...{ slot: `of ${token}`, state: 'done', token, label: "d'é", at: 1_900_000_000_000 },
});

async function keepsTheNewest(record: OnceRecord): Promise<void> {
  expect(await record.read('invoices')).toBeUndefined();
  expect(await record.write('invoices', entry(TOKEN))).toBe(true);
  expect(await record.write('invoices', { ...entry(TOKEN), state: 'begun' })).toBe(true);
  expect(await record.write('invoices', entry(TOKEN - 1n))).toBe(false);
  expect(await record.read('invoices')).toEqual({ ...entry(TOKEN), state: 'begun' });
  expect(await record.read('reports')).toBeUndefined();
}

describe('postgresRecord', () => {
  it('keeps the newest entry of each job, by whatever client', async () => {
    // An application may have every big number as a number.
    const types: pg.CustomTypesConfig = {
      getTypeParser: (oid) => (oid === pg.types.builtins.INT8 ? Number : String),
    };
    const numbers = new pg.Pool({ connectionString: server.url, types });
    const sql = postgres(server.url, { onnotice: () => undefined });
    const lite = await PGlite.create();
    const clients: [string, SqlClient][] = [
      ['pg', pool],
      ['numbers', numbers],
      ['postgres_js', sql as unknown as SqlClient],
      ['executor', async (text, values) => pool.query(text, [...values])],
      ['pglite', lite as unknown as SqlClient],
    ];
    for (const [schema, client] of clients) await keepsTheNewest(postgresRecord(client, { schema }));
    await Promise.all([numbers.end(), sql.end(), lite.close()]);
  });

  it('makes its table once, where many processes ask at the same time', async () => {
    const records = Array.from({ length: 20 }, () => postgresRecord(pool, { schema: 'together' }));
    expect(await Promise.all(records.map((record) => record.read('a')))).toEqual(
      records.map(() => undefined),
    );
    const written = await Promise.all(records.map((record, at) => record.write('a', entry(BigInt(at + 1)))));
    expect(written).toContain(true);
    expect(await records[0]?.read('a')).toEqual(entry(20n));
  });

  it("needs no right to create where the table is there, and tells its client's error where it is not", async () => {
    await postgresRecord(pool, { schema: 'rights' }).read('a');
    await pool.query(
      'CREATE ROLE clerk LOGIN; GRANT USAGE ON SCHEMA rights TO clerk; GRANT SELECT, INSERT, UPDATE ON rights.once_slots TO clerk',
    );
    const url = new URL(server.url);
    url.username = 'clerk';
    const clerk = new pg.Pool({ connectionString: url.href });
    const record = postgresRecord(clerk, { schema: 'rights' });
    expect(await record.write('a', entry(1n))).toBe(true);
    expect(await record.read('a')).toEqual(entry(1n));
    await expect(postgresRecord(clerk, { schema: 'elsewhere' }).read('a')).rejects.toMatchObject({
      code: '42501',
    });
    await clerk.end();
  });

  it('refuses an entry of a newer version', async () => {
    const record = postgresRecord(pool, { schema: 'newer' });
    await record.read('a');
    await record.write('a', entry(1n));
    await pool.query('UPDATE newer.once_slots SET version = 2');
    await expect(record.read('a')).rejects.toMatchObject({ code: 'LOCK_UNSUPPORTED' });
  });

  it.each([[undefined], [{}], ['postgres://localhost'], [null]])(
    'refuses the client %j at once',
    (client) => {
      expect(() => postgresRecord(client as unknown as SqlClient)).toThrow(
        expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
      );
    },
  );
});
