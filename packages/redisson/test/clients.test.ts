import { ioredisPort } from '@locks/redis-ioredis/port';
import { call, type RedisServer, request } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRedissonBackend } from '../src/index.ts';
import { redissonBackend } from '../src/ioredis.ts';
import { redissonBackend as onNodeRedis } from '../src/redis.ts';
import { openers, startRedis } from './setup.ts';

let redis: RedisServer;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

describe('what is refused', () => {
  const invalid = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });

  it('a client of the other library, and what is no client', () => {
    const ioredis = new Redis({ lazyConnect: true });
    expect(() => onNodeRedis(ioredis as never)).toThrow(/ioredis/);
    expect(() => redissonBackend({ isOpen: true } as never)).toThrow(/redis-node/);
    expect(() => redissonBackend('redis://localhost' as never)).toThrow(invalid);
    ioredis.disconnect();
  });

  it('bad options', () => {
    const client = new Redis({ lazyConnect: true });
    for (const options of [
      { prefix: 'a\n' },
      { prefix: 'x'.repeat(129) },
      { fencing: 1 },
      { maxPollMs: 10 },
      { shardedSubscriptionMode: 'AUTO' },
      { prefixes: '' },
    ])
      expect(() => redissonBackend(client, options as never)).toThrow(invalid);
    client.disconnect();
  });

  it('a forced release of a lock of getReadWriteLock, and a name whose key is no hash', async () => {
    await using a = await openers.ioredis(redis);
    const name = 'a lock of readers';
    await redis.command('HSET', name, 'mode', 'read', 'java:1', '1');
    expect(await a.backend.attempt(request(name), false, call)).toMatchObject({ status: 'contended' });
    await expect(a.backend.forceRelease?.(name, undefined, call)).rejects.toThrow(/getReadWriteLock/);
    expect(await redis.command('HLEN', name)).toBe(2);
    await redis.command('SET', 'a text', 'x');
    await expect(a.backend.attempt(request('a text'), true, call)).rejects.toThrow(/WRONGTYPE/);
    expect(await redis.command('GET', 'a text')).toBe('x');
  });
});

it('puts its prefix behind that of the client', async () => {
  const client = new Redis({ port: redis.port, keyPrefix: 'app:' });
  const backend = redissonBackend(client, { prefix: 'lock:' });
  await backend.attempt(request('x'), false, call);
  expect(await redis.command('EXISTS', 'app:lock:x')).toBe(1);
  await backend.close();
  client.disconnect();
});

it('is made of a port too', async () => {
  const client = new Redis({ port: redis.port });
  const backend = createRedissonBackend(ioredisPort(client), undefined);
  expect(backend.name).toBe('redisson');
  await backend.ping?.(call);
  await backend.close();
  expect(await client.ping()).toBe('PONG');
  client.disconnect();
});
