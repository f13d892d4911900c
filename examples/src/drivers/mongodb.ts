import { createLocks } from '@locks/core';
import { mongodbBackend } from '@locks/mongodb';
import type { MongoClient } from 'mongodb';

/** Sells one piece; a sale whose lease was lost meanwhile is refused by its token. */
export async function sellInMongodb(client: MongoClient, sku: string): Promise<number> {
  const shop = client.db('shop');
  const locks = createLocks(mongodbBackend(shop.collection('locks')));
  try {
    return await locks.lock(`sku:${sku}`).run(
      async ({ fencingToken }) => {
        const stock = shop.collection<{ _id: string; quantity: number; token: bigint }>('stock');
        const { quantity = 0 } = (await stock.findOne({ _id: sku })) ?? {};
        const { matchedCount } = await stock.updateOne(
          { _id: sku, token: { $lt: fencingToken } },
          { $set: { quantity: quantity - 1, token: fencingToken } },
        );
        if (matchedCount === 0) throw new Error(`Somebody else has sold ${sku} since.`);
        return quantity - 1;
      },
      { waitMs: 10_000 },
    );
  } finally {
    await locks.close();
  }
}
