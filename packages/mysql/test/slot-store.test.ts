import type { SlotEntry } from '@locks/core/backend';
import type { Pool } from 'mysql2';
import { describe, expect, it } from 'vitest';
import { mysqlSlots } from '../src/index.ts';
import { freshPrefix, openPool, sql, useServer } from './fixture.ts';

useServer();

/** A token beyond what a number holds exactly. */
const TOKEN = 2n ** 62n + 1n;
const entry = (token: bigint): SlotEntry => ({
  ...{ slot: `of ${token}`, state: 'done', token, label: "d'é\\", at: 1_900_000_000_000 },
});

describe('mysqlSlots', () => {
  it.each([
    ['as it is', undefined],
    ['without autocommit', 'SET autocommit = 0'],
    [
      'that is not strict',
      "SET sql_mode = 'NO_BACKSLASH_ESCAPES,ANSI_QUOTES', time_zone = '+05:00', NAMES latin1",
    ],
  ])('keeps the newest entry of each job in a session %s', async (_, onConnect) => {
    const tablePrefix = freshPrefix();
    const slots = mysqlSlots(openPool({}, onConnect), { tablePrefix });
    const other = mysqlSlots(openPool().promise(), { tablePrefix });
    const first = await slots.read('invoices');
    expect(first.entry).toBeUndefined();
    // The server is on this machine. The session's time zone is not UTC.
    expect(Math.abs((first.storeTime ?? 0) - Date.now())).toBeLessThan(10_000);
    expect(await slots.write('invoices', entry(TOKEN))).toBe(true);
    expect(await slots.write('invoices', entry(TOKEN))).toBe(true);
    expect(await slots.write('invoices', { ...entry(TOKEN), state: 'begun' })).toBe(true);
    expect(await slots.write('invoices', entry(TOKEN - 1n))).toBe(false);
    expect((await other.read('invoices')).entry).toEqual({ ...entry(TOKEN), state: 'begun' });
    expect(await other.write('invoices', entry(TOKEN + 1n))).toBe(true);
    expect((await slots.read('invoices')).entry).toEqual(entry(TOKEN + 1n));
    const none = await slots.read('Invoices');
    expect(none.entry).toBeUndefined();
    expect(Math.abs((none.storeTime ?? 0) - Date.now())).toBeLessThan(10_000);
  });

  it('makes its table once, where many processes ask at the same time, and does not mix their entries', async () => {
    const tablePrefix = freshPrefix();
    const stores = Array.from({ length: 20 }, () =>
      mysqlSlots(openPool({ connectionLimit: 1 }), { tablePrefix }),
    );
    const answers = await Promise.all(stores.map((slots) => slots.read('a')));
    expect(answers.map(({ entry }) => entry)).toEqual(stores.map(() => undefined));
    // Also the one that made the table tells the time.
    expect(answers.map(({ storeTime }) => typeof storeTime)).toEqual(stores.map(() => 'number'));
    const written = await Promise.all(stores.map((slots, at) => slots.write('a', entry(BigInt(at + 1)))));
    expect(written).toContain(true);
    expect((await stores[0]?.read('a'))?.entry).toEqual(entry(20n));
  });

  it('refuses an entry of a newer version, and a slot that a session would cut', async () => {
    const tablePrefix = freshPrefix();
    const slots = mysqlSlots(openPool(), { tablePrefix });
    await slots.read('a');
    await slots.write('a', entry(1n));
    await sql(`UPDATE locks.${tablePrefix}once_slots SET version = 2`);
    await expect(slots.read('a')).rejects.toMatchObject({ code: 'LOCK_UNSUPPORTED' });
    const long = { ...entry(2n), slot: 'x'.repeat(513) };
    await expect(slots.write('b', long)).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
  });

  it.each([[undefined], [{}], ['mysql://localhost'], [null]])('refuses the pool %j at once', (pool) => {
    expect(() => mysqlSlots(pool as unknown as Pool)).toThrow(
      expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
    );
  });
});
