import { endByThemselves, keepNewestEntry } from '@locks/test-servers/redis-clients/store-tests';
import { redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { expect, it } from 'vitest';
import { redisSlots, redisResults, type ValkeyGlideClient } from '../src/index.ts';
import { glideClient } from './setup.ts';

useRedis();

it('a slot store keeps the newest entry of each job', async () => {
  const client = await glideClient(redis);
  const slots = redisSlots(client);
  await keepNewestEntry(slots);
  expect((await redisSlots(client, { prefix: 'x:' }).read('invoices')).entry).toBeUndefined();
  client.close();
});

it('a result ends by itself, and its token refuses a lower one after that', async () => {
  const client = await glideClient(redis);
  await endByThemselves(redisResults(client));
  client.close();
});

it('refuses what is no client', () => {
  const invalid = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });
  expect(() => redisSlots({} as ValkeyGlideClient)).toThrow(invalid);
  expect(() => redisResults({} as ValkeyGlideClient)).toThrow(invalid);
});
