import { setTimeout as think } from 'node:timers/promises';
import type { LockManager } from '@locks/core';
import type { Stock } from './stock.ts';

/** What one worker did. Waits are milliseconds. */
export interface Sold {
  readonly units: number;
  readonly waits: readonly number[];
}

/** Sells one unit: read, think, write. Whether it found one to sell. */
async function sellOne(stock: Stock): Promise<boolean> {
  const units = stock.read();
  if (units <= 0) return false;
  await think(Math.random() * 2);
  stock.write(units - 1);
  return true;
}

/** Sells until the shelf is empty. Without `locks` nothing keeps two workers from selling the same unit. */
export async function sellOut(stock: Stock, locks: LockManager | undefined): Promise<Sold> {
  const waits: number[] = [];
  let units = 0;
  const lock = locks?.lock('stock:sku-42');
  for (;;) {
    const askedAt = performance.now();
    const sale = async (): Promise<boolean> => {
      waits.push(performance.now() - askedAt);
      return sellOne(stock);
    };
    const found = lock === undefined ? await sale() : await lock.run(sale, { waitMs: 60_000 });
    if (!found) return { units, waits: waits.slice(0, units) };
    units += 1;
  }
}
