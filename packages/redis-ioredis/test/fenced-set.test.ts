import type { SlotEntry } from '@locks/core/backend';
import { redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { Cluster, Redis } from 'ioredis';
import { expect, it } from 'vitest';
import { fencedSet, type IoredisClient, redisSlots } from '../src/index.ts';

useRedis();

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

const done: SlotEntry = {
  slot: '2030-01-01',
  state: 'done',
  token: 2n ** 62n + 1n,
  label: 'é',
  at: 1_900_000_000_000,
};

it("keeps a record of once where the client's keyPrefix says, and that of other locks under a key of its own", async () => {
  const client = new Redis({ port: redis.port, host: '127.0.0.1', keyPrefix: 'app:' });
  const slots = redisSlots(client);
  const first = await slots.read('invoices');
  expect(first.entry).toBeUndefined();
  // The server is on this machine.
  expect(Math.abs((first.storeTime ?? 0) - Date.now())).toBeLessThan(10_000);
  expect(await slots.write('invoices', done)).toBe(true);
  expect((await slots.read('invoices')).entry).toEqual(done);
  expect(JSON.parse(String(await redis.command('GET', 'app:once:invoices')))).toMatchObject({ version: 1 });
  await expect(slots.write('invoices', { ...done, token: done.token - 1n })).rejects.toMatchObject({
    code: 'LOCK_LOST',
  });
  const other = redisSlots(client, { prefix: 'tenant:' });
  expect((await other.read('invoices')).entry).toBeUndefined();
  await other.write('invoices', { ...done, token: 1n });
  expect(await redis.command('EXISTS', 'app:once|tenant:|invoices')).toBe(1);
  client.disconnect();
});

it('refuses a record of a newer version, and reads one that was written before there were versions', async () => {
  const client = new Redis({ port: redis.port, host: '127.0.0.1' });
  const { token, ...entry } = done;
  await client.set('once:old', JSON.stringify({ ...entry, token: String(token) }));
  await client.set('once:new', JSON.stringify({ ...entry, token: String(token), version: 2 }));
  expect((await redisSlots(client).read('old')).entry).toEqual(done);
  await expect(redisSlots(client).read('new')).rejects.toMatchObject({ code: 'LOCK_UNSUPPORTED' });
  client.disconnect();
});

it('refuses for a slots, at once, what is no client, or one that reads from replicas', () => {
  const replicas = new Cluster([], { scaleReads: 'slave', lazyConnect: true });
  for (const client of ['redis://localhost', replicas])
    expect(() => redisSlots(client as unknown as IoredisClient)).toThrow(
      expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
    );
});
