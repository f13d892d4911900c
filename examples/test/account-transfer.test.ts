import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks } from '@locks/core';
import { memoryBackend, MemoryStore } from '@locks/memory';
import { expect, it } from 'vitest';
import { AccountTable, transfer } from '../src/account-transfer.ts';

/** A table whose reads take a while, so that two transfers without locks would certainly mix. */
class SlowTable extends AccountTable {
  override async cents(id: string): Promise<number> {
    const cents = await super.cents(id);
    await sleep(2);
    return cents;
  }
}

it('moves money in all directions at once without a deadlock, and loses none', async () => {
  const store = new MemoryStore();
  const machines = [createLocks(memoryBackend(store)), createLocks(memoryBackend(store))] as const;
  const table = new SlowTable();
  const accounts = ['ada', 'bob', 'cid'] as const;
  for (const id of accounts) table.open(id, 1_000);
  const outcomes = await Promise.all(
    Array.from({ length: 60 }, (_, n) => {
      const from = accounts[n % 3] ?? 'ada';
      const to = accounts[(n + 1 + (n % 2)) % 3] ?? 'bob';
      return transfer(machines[n % 2] ?? machines[0], table, from, to, 7 * (n % 5));
    }),
  );
  expect(outcomes).toEqual(Array(60).fill('done'));
  const cents = await Promise.all(accounts.map((id) => table.cents(id)));
  expect(cents.reduce((sum, each) => sum + each, 0)).toBe(3_000);
  await Promise.all(machines.map((locks) => locks.close()));
});

it('takes nothing from an account that has too little, nor from one that is locked', async () => {
  await using locks = createLocks(memoryBackend());
  const table = new AccountTable();
  table.open('ada', 10);
  table.open('bob', 0);
  expect(await transfer(locks, table, 'ada', 'bob', 11)).toBe('too-little');
  const elsewhere = await locks.lock('account:bob').acquire();
  await expect(locks.all([locks.lock('account:ada'), locks.lock('account:bob')]).tryAcquire()).resolves.toBe(
    undefined,
  );
  // Nothing was kept of the set that could not be had as a whole.
  await (await locks.lock('account:ada').acquire({ waitMs: 0 })).release();
  await elsewhere.release();
  expect(await transfer(locks, table, 'ada', 'bob', 10)).toBe('done');
  expect(await Promise.all([table.cents('ada'), table.cents('bob')])).toEqual([0, 10]);
});

it('writes no account when a later holder has written one of them', async () => {
  const table = new AccountTable();
  table.open('ada', 10);
  table.open('bob', 0);
  expect(await table.update([{ id: 'bob', cents: 1, fence: 9n }])).toBe(true);
  const late = [
    { id: 'ada', cents: 0, fence: 8n },
    { id: 'bob', cents: 10, fence: 8n },
  ];
  expect(await table.update(late)).toBe(false);
  expect(await table.cents('ada')).toBe(10);
});
