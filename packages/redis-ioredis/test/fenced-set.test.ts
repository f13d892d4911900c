import { type RedisServer, startRedis } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { fencedSet, type IoredisClient } from '../src/index.ts';

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

it("writes where the client's keyPrefix says, never with an older token", async () => {
  const client = new Redis({ port: redis.port, host: '127.0.0.1', keyPrefix: 'app:' });
  await fencedSet(client, 'key', 'a', 2n);
  await expect(fencedSet(client, 'key', 'b', 1n)).rejects.toMatchObject({
    code: 'LOCK_LOST',
    reason: 'taken-over',
    backend: 'redis-ioredis',
  });
  expect(await redis.command('GET', 'app:key')).toBe('a');
  client.disconnect();
});

it('refuses what is no client', async () => {
  const address = 'redis://localhost' as unknown as IoredisClient;
  await expect(fencedSet(address, 'key', 'a', 1n)).rejects.toMatchObject({ code: 'LOCK_INVALID_ARGUMENT' });
});
