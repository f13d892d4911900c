import { startMongodb } from '@locks/test-servers';
import { MongoClient } from 'mongodb';
import { expect, it } from 'vitest';
import { sellInMongodb } from '../src/drivers/mongodb.ts';

it('sells each piece once, and refuses the sale of a lease that was lost', async () => {
  await using server = await startMongodb();
  const client = new MongoClient(server.url);
  try {
    const stock = client.db('shop').collection<{ _id: string; quantity: number; token: bigint }>('stock');
    await stock.insertOne({ _id: 'a', quantity: 10, token: 0n });
    const left = await Promise.all(Array.from({ length: 4 }, () => sellInMongodb(client, 'a')));
    expect(left.sort((a, b) => a - b)).toEqual([6, 7, 8, 9]);
    await stock.updateOne({ _id: 'a' }, { $set: { token: 2n ** 60n } });
    await expect(sellInMongodb(client, 'a')).rejects.toThrow('Somebody else has sold a');
  } finally {
    await client.close();
  }
});
