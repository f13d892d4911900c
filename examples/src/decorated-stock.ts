/**
 * The stock example as methods that lock by themselves. Decorators of the TC39 standard: TypeScript compiles them, Node
 * does not run them as they stand. A method has no lease in hand, hence no fencing token: where a write that comes too
 * late would harm, use `run` as in `stock-deduction.ts`.
 */
import { Locked, type LockManager } from '@locks/core';

/** A table `stock (sku, units)`. */
export interface StockTable {
  units(sku: string): Promise<number>;
  update(sku: string, units: number): Promise<void>;
}

const locksOf = (warehouse: Warehouse): LockManager => warehouse.locks;
const bySku = (sku: string): string => `stock:${sku}`;

export class Warehouse {
  readonly locks: LockManager;
  readonly #table: StockTable;

  constructor(locks: LockManager, table: StockTable) {
    this.locks = locks;
    this.#table = table;
  }

  /** One at a time for each article, over all machines; others wait for their turn. */
  @Locked(locksOf, (sku: string, _units: number) => bySku(sku), { waitMs: 5_000 })
  async deduct(sku: string, units: number): Promise<'sold' | 'out-of-stock'> {
    const inStock = await this.#table.units(sku);
    if (inStock < units) return 'out-of-stock';
    await this.#table.update(sku, inStock - units);
    return 'sold';
  }

  /** Refuses at once, with `LOCK_CONTENDED`, while a sale holds the lock: counting can be done later. */
  @Locked(locksOf, (sku: string, _count: () => Promise<number>) => bySku(sku), { whenContended: 'refuse' })
  async recount(sku: string, count: () => Promise<number>): Promise<void> {
    await this.#table.update(sku, await count());
  }

  /** Without a key: one at a time in all, under the name `Warehouse.closeDay`. */
  @Locked(locksOf)
  async closeDay(report: () => Promise<void>): Promise<void> {
    await report();
  }
}
