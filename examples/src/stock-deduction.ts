/**
 * Deducting stock: read, decide, write, with nobody in between. The fencing token goes into the write, so that a holder
 * that was stopped for longer than its ttl and writes late is rejected by the data itself.
 */
import { isLockError, type LockManager } from '@locks/core';

/** A table `stock (sku, units, fence)`. */
export class StockTable {
  readonly #rows = new Map<string, { units: number; fence: bigint }>();

  insert(sku: string, units: number): void {
    this.#rows.set(sku, { units, fence: 0n });
  }

  async units(sku: string): Promise<number> {
    return this.#rows.get(sku)?.units ?? 0;
  }

  /**
   * Writes unless a later holder has written: whether it did. A real one is `UPDATE … SET …, fence = $token WHERE sku = $sku
   * AND fence <= $token`, and reads whether a row was written. `<=`: the same lease may write twice.
   */
  async update(sku: string, units: number, fence: bigint): Promise<boolean> {
    const row = this.#rows.get(sku);
    if (row === undefined || row.fence > fence) return false;
    this.#rows.set(sku, { units, fence });
    return true;
  }
}

export type Deduction = 'sold' | 'out-of-stock' | 'busy';

export async function deduct(
  locks: LockManager,
  table: StockTable,
  sku: string,
  units: number,
): Promise<Deduction> {
  try {
    return await locks.lock(`stock:${sku}`).run(
      async (lease) => {
        const inStock = await table.units(sku);
        if (inStock < units) return 'out-of-stock';
        // More than enough time for the write that follows, or none of it happens.
        lease.assertValid(1_000);
        const written = await table.update(sku, inStock - units, lease.fencingToken ?? 0n);
        if (!written) throw new Error(`A later holder has written ${sku}: this lease came too late.`);
        return 'sold';
      },
      { waitMs: 2_000 },
    );
  } catch (error) {
    if (isLockError(error, 'LOCK_TIMEOUT')) return 'busy';
    throw error;
  }
}
