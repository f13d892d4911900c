import { keepNewestEntry, writeFencedValues } from '@locks/test-servers/redis-clients/store-tests';
import { redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { createClient } from 'redis';
import { expect, it } from 'vitest';
import { fencedSet, type NodeRedisClient, redisSlots } from '../src/index.ts';

useRedis();

const invalid = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });

it('writes with the newest token and with a newer one, never with an older', async () => {
  const client = createClient({ url: redis.url });
  await expect(fencedSet(client, 'key', 'a', 5n)).rejects.toEqual(invalid);
  await client.connect();
  await writeFencedValues(redis, (...args) => fencedSet(client, ...args));
  client.destroy();
});

it('refuses what is no client', async () => {
  await expect(fencedSet({} as NodeRedisClient, 'key', 'a', 5n)).rejects.toEqual(invalid);
});

it('keeps a record of once, and refuses an older token', async () => {
  const client = await createClient({ url: redis.url }).connect();
  await keepNewestEntry(redisSlots(client));
  client.destroy();
});
