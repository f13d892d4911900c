import { createLocks } from '@locks/core';
import { memoryBackend } from '@locks/memory';
import { expect, it } from 'vitest';
import { deduct, StockTable } from '../src/stock-deduction.ts';

it('sells what is in stock and no more, however many ask at once', async () => {
  await using locks = createLocks(memoryBackend());
  const table = new StockTable();
  table.insert('sku-42', 10);
  const outcomes = await Promise.all(Array.from({ length: 25 }, () => deduct(locks, table, 'sku-42', 1)));
  expect(outcomes.filter((outcome) => outcome === 'sold')).toHaveLength(10);
  expect(outcomes.filter((outcome) => outcome === 'out-of-stock')).toHaveLength(15);
  expect(await table.units('sku-42')).toBe(0);
});

it('rejects the write of a holder that comes after its successor', async () => {
  const table = new StockTable();
  table.insert('sku-42', 10);
  expect(await table.update('sku-42', 9, 8n)).toBe(true);
  expect(await table.update('sku-42', 10, 7n)).toBe(false);
  expect(await table.units('sku-42')).toBe(9);
});
