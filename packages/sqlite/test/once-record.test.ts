import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLocks } from '@locks/core';
import type { SlotEntry } from '@locks/core/backend';
import { describe, expect, it } from 'vitest';
import { sqliteBackend, sqliteRecord } from '../src/index.ts';

const freshPath = (): string => join(mkdtempSync(join(tmpdir(), 'sqlite-record-')), 'locks.db');
/** Beyond what a number holds exactly. */
const TOKEN = 2n ** 62n + 1n;
const entry = (slot: string, token: bigint): SlotEntry => ({
  slot,
  state: 'done',
  token,
  label: 'machine-1',
  at: 1_700_000_000_000,
});

describe('sqliteRecord', () => {
  it('keeps the last slot of each job, for every record of the file', async () => {
    const path = freshPath();
    const record = sqliteRecord({ path });
    expect(await record.read('invoices')).toBeUndefined();
    expect(await record.write('invoices', entry('2030-01-01', TOKEN))).toBe(true);
    expect(await record.write('reports', entry('2030-01-02', 1n))).toBe(true);
    expect(await sqliteRecord({ path }).read('invoices')).toEqual(entry('2030-01-01', TOKEN));
    expect(await record.read('reports')).toEqual(entry('2030-01-02', 1n));
  });

  it('refuses an older token, and takes the same one again', async () => {
    const record = sqliteRecord({ path: freshPath() });
    await record.write('invoices', entry('2030-01-02', TOKEN));
    expect(await record.write('invoices', entry('2030-01-01', TOKEN - 1n))).toBe(false);
    expect((await record.read('invoices'))?.slot).toBe('2030-01-02');
    expect(await record.write('invoices', { ...entry('2030-01-02', TOKEN), state: 'begun' })).toBe(true);
    expect(await record.write('invoices', entry('2030-01-03', TOKEN + 1n))).toBe(true);
    expect(await record.read('invoices')).toEqual(entry('2030-01-03', TOKEN + 1n));
  });

  it('may be in the file of the locks', async () => {
    const path = freshPath();
    await using locks = createLocks(sqliteBackend({ path }));
    const token = await locks.lock('invoices').run(async ({ fencingToken }) => {
      expect(await sqliteRecord({ path }).write('invoices', entry('2030-01-01', fencingToken))).toBe(true);
      return fencingToken;
    });
    await locks.lock('invoices').run(async (lease) => expect(lease.fencingToken).toBeGreaterThan(token));
    expect((await sqliteRecord({ path }).read('invoices'))?.token).toBe(token);
  });

  it.each([[{}], [{ path: '' }], [{ path: ':memory:' }], [{ path: 'x.db', other: 1 }]])(
    'refuses %j at once',
    (options) => {
      expect(() => sqliteRecord(options as { path: string })).toThrow(
        expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
      );
    },
  );
});
