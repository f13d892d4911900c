import { createLocks } from '@locks/core';
import { fencedUpdate, postgresLeaseBackend } from '@locks/postgres/postgres-js';
import type { Sql } from 'postgres';

/** Sells one piece: a lock around a transaction of postgres.js, whose write is refused if the lease was lost meanwhile. */
export async function sell(sql: Sql, sku: number): Promise<number> {
  const locks = createLocks(postgresLeaseBackend(sql));
  try {
    return await locks.lock(`sku:${sku}`).run(
      ({ fencingToken: token }) =>
        sql.begin(async (tx) => {
          const [row] = await tx<{ quantity: number }[]>`SELECT quantity FROM stock WHERE sku = ${sku}`;
          const quantity = (row?.quantity ?? 0) - 1;
          await fencedUpdate(tx, { table: 'stock', key: { sku }, set: { quantity }, token });
          return quantity;
        }),
      { waitMs: 5_000 },
    );
  } finally {
    await locks.close();
  }
}
