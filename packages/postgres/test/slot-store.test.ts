import type { SlotStore, SlotEntry } from '@locks/core/backend';
import { PGlite } from '@electric-sql/pglite';
import { type PostgresServer, startPostgres } from '@locks/test-servers';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { postgresSlots, type SqlClient } from '../src/index.ts';

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

async function keepsTheNewest(slots: SlotStore): Promise<void> {
  const first = await slots.read('invoices');
  expect(first.entry).toBeUndefined();
  // The server is on this machine.
  expect(Math.abs((first.storeTime ?? 0) - Date.now())).toBeLessThan(10_000);
  expect(await slots.write('invoices', entry(TOKEN))).toBe(true);
  expect(await slots.write('invoices', { ...entry(TOKEN), state: 'begun' })).toBe(true);
  expect(await slots.write('invoices', entry(TOKEN - 1n))).toBe(false);
  const { entry: found, storeTime } = await slots.read('invoices');
  expect(found).toEqual({ ...entry(TOKEN), state: 'begun' });
  expect(Math.abs((storeTime ?? 0) - Date.now())).toBeLessThan(10_000);
  expect((await slots.read('reports')).entry).toBeUndefined();
}

describe('postgresSlots', () => {
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
    for (const [schema, client] of clients) await keepsTheNewest(postgresSlots(client, { schema }));
    await Promise.all([numbers.end(), sql.end(), lite.close()]);
  });

  it('keeps apart names with U+0000, which locks may have', async () => {
    const slots = postgresSlots(pool, { schema: 'nul' });
    const names = ['a\0b', 'ab', 'a\u00010b', 'a\u0001b', '\0', '\u0001'];
    const found = async () =>
      (await Promise.all(names.map((name) => slots.read(name)))).map((read) => read.entry);
    expect(await found()).toEqual(names.map(() => undefined));
    const entries = names.map((name, at) => ({ ...entry(BigInt(at + 1)), slot: name, label: name }));
    for (const [at, name] of names.entries()) await slots.write(name, entries[at] as SlotEntry);
    expect(await found()).toEqual(entries);
  });

  it('makes its table once, where many processes ask at the same time', async () => {
    const stores = Array.from({ length: 20 }, () => postgresSlots(pool, { schema: 'together' }));
    const answers = await Promise.all(stores.map((slots) => slots.read('a')));
    expect(answers.map((answer) => answer.entry)).toEqual(stores.map(() => undefined));
    // Also the one that made the table tells the time.
    expect(answers.map(({ storeTime }) => typeof storeTime)).toEqual(stores.map(() => 'number'));
    const written = await Promise.all(stores.map((slots, at) => slots.write('a', entry(BigInt(at + 1)))));
    expect(written).toContain(true);
    expect((await stores[0]?.read('a'))?.entry).toEqual(entry(20n));
  });

  it("needs no right to create where the table is there, and tells its client's error where it is not", async () => {
    await postgresSlots(pool, { schema: 'rights' }).read('a');
    await pool.query(
      'CREATE ROLE clerk LOGIN; GRANT USAGE ON SCHEMA rights TO clerk; GRANT SELECT, INSERT, UPDATE ON rights.once_slots TO clerk',
    );
    const url = new URL(server.url);
    url.username = 'clerk';
    const clerk = new pg.Pool({ connectionString: url.href });
    const slots = postgresSlots(clerk, { schema: 'rights' });
    expect(await slots.write('a', entry(1n))).toBe(true);
    expect((await slots.read('a')).entry).toEqual(entry(1n));
    await expect(postgresSlots(clerk, { schema: 'elsewhere' }).read('a')).rejects.toMatchObject({
      code: '42501',
    });
    await clerk.end();
  });

  it('refuses an entry of a newer version', async () => {
    const slots = postgresSlots(pool, { schema: 'newer' });
    await slots.read('a');
    await slots.write('a', entry(1n));
    await pool.query('UPDATE newer.once_slots SET version = 2');
    await expect(slots.read('a')).rejects.toMatchObject({ code: 'LOCK_UNSUPPORTED' });
  });

  it.each([[undefined], [{}], ['postgres://localhost'], [null]])(
    'refuses the client %j at once',
    (client) => {
      expect(() => postgresSlots(client as unknown as SqlClient)).toThrow(
        expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
      );
    },
  );
});
