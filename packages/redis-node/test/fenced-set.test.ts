import { type RedisServer, startRedis } from '@locks/test-servers';
import { createClient } from 'redis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { fencedSet, type NodeRedisClient, redisSlots } from '../src/index.ts';

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const invalid = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });

it('writes with the newest token and with a newer one, never with an older', async () => {
  const client = createClient({ url: redis.url });
  await expect(fencedSet(client, 'key', 'a', 5n)).rejects.toEqual(invalid);
  await client.connect();
  await fencedSet(client, 'key', 'a', 5n);
  await fencedSet(client, 'key', 'b', 6n, { ttlMs: 60_000 });
  await expect(fencedSet(client, 'key', 'c', 5n)).rejects.toMatchObject({
    code: 'LOCK_LOST',
    reason: 'taken-over',
  });
  expect(await client.get('key')).toBe('b');
  expect(await client.pTTL('key')).toBeGreaterThan(50_000);
  client.destroy();
});

it('refuses what is no client', async () => {
  await expect(fencedSet({} as NodeRedisClient, 'key', 'a', 5n)).rejects.toEqual(invalid);
});

it('keeps a record of once, and refuses an older token', async () => {
  const client = await createClient({ url: redis.url }).connect();
  const slots = redisSlots(client);
  const entry = { slot: 'a', state: 'done', token: 2n ** 62n + 1n, label: 'm', at: 1 } as const;
  const first = await slots.read('invoices');
  expect(first.entry).toBeUndefined();
  // The server is on this machine.
  expect(Math.abs((first.storeTime ?? 0) - Date.now())).toBeLessThan(10_000);
  await slots.write('invoices', entry);
  await expect(slots.write('invoices', { ...entry, token: 2n ** 62n })).rejects.toMatchObject({
    code: 'LOCK_LOST',
  });
  expect((await slots.read('invoices')).entry).toEqual(entry);
  client.destroy();
});
