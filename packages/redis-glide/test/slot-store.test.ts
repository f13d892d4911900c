import { type RedisServer, startRedis, waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { redisSlots, redisResults, type ValkeyGlideClient } from '../src/index.ts';
import { glideClient } from './setup.ts';

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

const TOKEN = 2n ** 62n + 1n;
const entry = (token: bigint) =>
  ({ slot: `of ${token}`, state: 'done', token, label: 'é', at: 1_900_000_000_000 }) as const;

it('a slot store keeps the newest entry of each job', async () => {
  const client = await glideClient(redis);
  const slots = redisSlots(client);
  const first = await slots.read('a');
  expect(first.entry).toBeUndefined();
  // The server is on this machine.
  expect(Math.abs((first.storeTime ?? 0) - Date.now())).toBeLessThan(10_000);
  expect(await slots.write('a', entry(TOKEN))).toBe(true);
  await expect(slots.write('a', entry(TOKEN - 1n))).rejects.toMatchObject({ code: 'LOCK_LOST' });
  expect((await slots.read('a')).entry).toEqual(entry(TOKEN));
  expect((await redisSlots(client, { prefix: 'x:' }).read('a')).entry).toBeUndefined();
  client.close();
});

it('a result ends by itself, and its token refuses a lower one after that', async () => {
  const client = await glideClient(redis);
  const results = redisResults(client);
  expect((await results.get('a')) ?? undefined).toBeUndefined();
  await results.set('a', 'é', TOKEN, 60_000);
  expect(await results.get('a')).toBe('é');
  await results.set('a', 'brief', TOKEN, 50);
  await waitUntil(async () => !(await results.get('a')), { what: 'the end of the result' });
  await expect(results.set('a', 'late', TOKEN - 1n, 60_000)).rejects.toMatchObject({ code: 'LOCK_LOST' });
  client.close();
});

it('refuses what is no client', () => {
  const invalid = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });
  expect(() => redisSlots({} as ValkeyGlideClient)).toThrow(invalid);
  expect(() => redisResults({} as ValkeyGlideClient)).toThrow(invalid);
});
