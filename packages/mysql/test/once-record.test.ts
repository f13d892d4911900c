import type { SlotEntry } from '@locks/core/backend';
import type { Pool } from 'mysql2';
import { describe, expect, it } from 'vitest';
import { mysqlRecord } from '../src/index.ts';
import { freshPrefix, openPool, sql, useServer } from './fixture.ts';

useServer();

/** A token beyond what a number holds exactly. */
const TOKEN = 2n ** 62n + 1n;
const entry = (token: bigint): SlotEntry => ({
  ...{ slot: `of ${token}`, state: 'done', token, label: "d'é\\", at: 1_900_000_000_000 },
});

describe('mysqlRecord', () => {
  it.each([
    ['as it is', undefined],
    ['without autocommit', 'SET autocommit = 0'],
    ['that is not strict', "SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES', NAMES latin1"],
  ])('keeps the newest entry of each job in a session %s', async (_, onConnect) => {
    const tablePrefix = freshPrefix();
    const record = mysqlRecord(openPool({}, onConnect), { tablePrefix });
    const other = mysqlRecord(openPool().promise(), { tablePrefix });
    expect(await record.read('invoices')).toBeUndefined();
    expect(await record.write('invoices', entry(TOKEN))).toBe(true);
    expect(await record.write('invoices', entry(TOKEN))).toBe(true);
    expect(await record.write('invoices', { ...entry(TOKEN), state: 'begun' })).toBe(true);
    expect(await record.write('invoices', entry(TOKEN - 1n))).toBe(false);
    expect(await other.read('invoices')).toEqual({ ...entry(TOKEN), state: 'begun' });
    expect(await other.write('invoices', entry(TOKEN + 1n))).toBe(true);
    expect(await record.read('invoices')).toEqual(entry(TOKEN + 1n));
    expect(await record.read('Invoices')).toBeUndefined();
  });

  it('makes its table once, where many processes ask at the same time, and does not mix their entries', async () => {
    const tablePrefix = freshPrefix();
    const records = Array.from({ length: 20 }, () =>
      mysqlRecord(openPool({ connectionLimit: 1 }), { tablePrefix }),
    );
    expect(await Promise.all(records.map((record) => record.read('a')))).toEqual(
      records.map(() => undefined),
    );
    const written = await Promise.all(records.map((record, at) => record.write('a', entry(BigInt(at + 1)))));
    expect(written).toContain(true);
    expect(await records[0]?.read('a')).toEqual(entry(20n));
  });

  it('refuses an entry of a newer version, and a slot that a session would cut', async () => {
    const tablePrefix = freshPrefix();
    const record = mysqlRecord(openPool(), { tablePrefix });
    await record.read('a');
    await record.write('a', entry(1n));
    await sql(`UPDATE locks.${tablePrefix}once_slots SET version = 2`);
    await expect(record.read('a')).rejects.toMatchObject({ code: 'LOCK_UNSUPPORTED' });
    const long = { ...entry(2n), slot: 'x'.repeat(513) };
    await expect(record.write('b', long)).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
  });

  it.each([[undefined], [{}], ['mysql://localhost'], [null]])('refuses the pool %j at once', (pool) => {
    expect(() => mysqlRecord(pool as unknown as Pool)).toThrow(
      expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
    );
  });
});
