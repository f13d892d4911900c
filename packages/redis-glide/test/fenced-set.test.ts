import { type RedisServer, startRedis } from '@locks/test-servers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { fencedSet, type ValkeyGlideClient } from '../src/index.ts';
import { glideClient } from './setup.ts';

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const invalid = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });

it('writes with the newest token and with a newer one, never with an older', async () => {
  const client = await glideClient(redis);
  await fencedSet(client, 'key', 'a', 5n);
  await fencedSet(client, 'key', 'b', 6n, { ttlMs: 60_000 });
  await expect(fencedSet(client, 'key', 'c', 5n)).rejects.toMatchObject({
    code: 'LOCK_LOST',
    reason: 'taken-over',
  });
  expect(await client.get('key')).toBe('b');
  expect(await client.pttl('key')).toBeGreaterThan(50_000);
  client.close();
});

it('refuses what is no client', async () => {
  await expect(fencedSet({} as ValkeyGlideClient, 'key', 'a', 5n)).rejects.toEqual(invalid);
});
