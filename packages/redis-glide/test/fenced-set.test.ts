import { writeFencedValues } from '@locks/test-servers/redis-clients/store-tests';
import { redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { expect, it } from 'vitest';
import { fencedSet, type ValkeyGlideClient } from '../src/index.ts';
import { glideClient } from './setup.ts';

useRedis();

const invalid = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });

it('writes with the newest token and with a newer one, never with an older', async () => {
  const client = await glideClient(redis);
  await writeFencedValues(redis, (...args) => fencedSet(client, ...args));
  client.close();
});

it('refuses what is no client', async () => {
  await expect(fencedSet({} as ValkeyGlideClient, 'key', 'a', 5n)).rejects.toEqual(invalid);
});
