import { createLocks } from '@locks/core';
import { redisBackend } from '@locks/redis-glide';
import { GlideClient } from '@valkey/valkey-glide';

/** Does the work under the lock `report`, through a client of Valkey GLIDE. */
export async function reportByGlide<T>(host: string, port: number, work: () => Promise<T>): Promise<T> {
  const client = await GlideClient.createClient({ addresses: [{ host, port }] });
  const locks = createLocks(redisBackend(client));
  try {
    return await locks.lock('report').run(work, { waitMs: 10_000 });
  } finally {
    await locks.close();
    client.close();
  }
}
