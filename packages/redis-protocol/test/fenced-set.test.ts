import { type RedisServer, startRedis } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fencedSetThrough } from '../src/index.ts';
import { TestPort } from './test-port.ts';

let redis: RedisServer;
let client: Redis;
let port: TestPort;
let count = 0;
const fresh = () => `value-${++count}`;

beforeAll(async () => {
  redis = await startRedis();
  client = new Redis(redis.port, '127.0.0.1');
  port = new TestPort(client);
});
afterAll(async () => {
  client.disconnect();
  await redis.stop();
});

const refused = expect.objectContaining({ code: 'LOCK_LOST', reason: 'taken-over', backend: 'test-port' });
const invalid = expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' });

describe('fencedSetThrough', () => {
  it('writes with the newest token and with a newer one, never with an older', async () => {
    const key = fresh();
    await fencedSetThrough(port, key, 'a', 9n, undefined);
    await fencedSetThrough(port, key, 'b', 9n, undefined);
    await fencedSetThrough(port, key, 'c', 10n, undefined);
    await expect(fencedSetThrough(port, key, 'd', 9n, undefined)).rejects.toEqual(refused);
    // Also where a double has no digits left to tell them apart.
    await fencedSetThrough(port, key, 'e', 2n ** 63n, undefined);
    await expect(fencedSetThrough(port, key, 'f', 2n ** 63n - 1n, undefined)).rejects.toEqual(refused);
    expect(await client.get(key)).toBe('e');
  });

  it('lets values last for a time, for ever, or as long as before, and remembers the token beyond', async () => {
    const key = fresh();
    await fencedSetThrough(port, key, 'a', 2n, { ttlMs: 50_000 });
    expect(await client.pttl(key)).toBeGreaterThan(40_000);
    await fencedSetThrough(port, key, 'b', 2n, { ttlMs: 'keep' });
    expect(await client.pttl(key)).toBeGreaterThan(40_000);
    await fencedSetThrough(port, key, 'c', 2n, undefined);
    expect(await client.pttl(key)).toBe(-1);
    await client.del(key);
    await expect(fencedSetThrough(port, key, 'd', 1n, undefined)).rejects.toEqual(refused);
    const [fence] = await client.keys(`locks:fence:*:${key}`);
    expect(await client.pttl(fence as string)).toBe(-1);
    await fencedSetThrough(port, key, 'e', 3n, { fenceTtlMs: 50_000 });
    expect(await client.pttl(fence as string)).toBeGreaterThan(40_000);
    await fencedSetThrough(port, key, 'f', 3n, undefined);
    expect(await client.pttl(fence as string)).toBe(-1);
  });

  it('leaves alone what is no fence', async () => {
    const key = fresh();
    await fencedSetThrough(port, key, 'a', 1n, undefined);
    const [fence] = (await client.keys(`locks:fence:*:${key}`)) as [string];
    await client.del(fence);
    await client.rpush(fence, 'theirs');
    await expect(fencedSetThrough(port, key, 'b', 2n, undefined)).rejects.toThrow(/WRONGTYPE/);
    expect(await client.get(key)).toBe('a');
  });

  it.each([
    ['an empty key', '', 'x', 1n, {}],
    ['a value that is no string', 'k', 7, 1n, {}],
    ['no token', 'k', 'x', undefined, {}],
    ['a number for a token', 'k', 'x', 7, {}],
    ['a token of 0', 'k', 'x', 0n, {}],
    ['a ttl of 0', 'k', 'x', 1n, { ttlMs: 0 }],
    ['a fraction', 'k', 'x', 1n, { fenceTtlMs: 0.5 }],
  ])('refuses %s', async (_, key, value, token, options) => {
    await expect(fencedSetThrough(port, key, value as string, token as bigint, options)).rejects.toEqual(
      invalid,
    );
  });
});
