import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLocks } from '@locks/core';
import type { SlotEntry } from '@locks/core/backend';
import { describe, expect, it } from 'vitest';
import { sqliteBackend, sqliteSlots } from '../src/index.ts';

const freshPath = (): string => join(mkdtempSync(join(tmpdir(), 'sqlite-slots-')), 'locks.db');
/** Beyond what a number holds exactly. */
const TOKEN = 2n ** 62n + 1n;
const entry = (slot: string, token: bigint): SlotEntry => ({
  slot,
  state: 'done',
  token,
  label: 'machine-1',
  at: 1_700_000_000_000,
});

describe('sqliteSlots', () => {
  it('keeps the last slot of each job, for every slot store of the file', async () => {
    const path = freshPath();
    const slots = sqliteSlots(path);
    expect(await slots.read('invoices')).toEqual({ entry: undefined, storeTime: undefined });
    expect(await slots.write('invoices', entry('2030-01-01', TOKEN))).toBe(true);
    expect(await slots.write('reports', entry('2030-01-02', 1n))).toBe(true);
    expect((await sqliteSlots(path).read('invoices')).entry).toEqual(entry('2030-01-01', TOKEN));
    expect((await slots.read('reports')).entry).toEqual(entry('2030-01-02', 1n));
  });

  it('refuses an older token, and takes the same one again', async () => {
    const slots = sqliteSlots(freshPath());
    await slots.write('invoices', entry('2030-01-02', TOKEN));
    expect(await slots.write('invoices', entry('2030-01-01', TOKEN - 1n))).toBe(false);
    expect((await slots.read('invoices')).entry?.slot).toBe('2030-01-02');
    expect(await slots.write('invoices', { ...entry('2030-01-02', TOKEN), state: 'begun' })).toBe(true);
    expect(await slots.write('invoices', entry('2030-01-03', TOKEN + 1n))).toBe(true);
    expect((await slots.read('invoices')).entry).toEqual(entry('2030-01-03', TOKEN + 1n));
  });

  it('may be in the file of the locks', async () => {
    const path = freshPath();
    await using locks = createLocks(sqliteBackend(path));
    const token = await locks.lock('invoices').run(async ({ fencingToken }) => {
      expect(await sqliteSlots(path).write('invoices', entry('2030-01-01', fencingToken))).toBe(true);
      return fencingToken;
    });
    await locks.lock('invoices').run(async (lease) => expect(lease.fencingToken).toBeGreaterThan(token));
    expect((await sqliteSlots(path).read('invoices')).entry?.token).toBe(token);
  });

  it.each([[undefined], [''], [':memory:'], [{ path: 'x.db' }]])('refuses %j at once', (path) => {
    expect(() => sqliteSlots(path as string)).toThrow(
      expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
    );
  });
});
