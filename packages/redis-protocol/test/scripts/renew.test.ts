import { startRedis } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { client, fresh, redis, useServer } from './lab.ts';
import { ScriptClient } from './script-client.ts';

useServer();

describe('renew', () => {
  it('renews own leases, never recreates one, and reports for each what is wrong', async () => {
    const [held, gone, taken, list] = [fresh(), fresh(), fresh(), fresh()];
    await client.acquire(held, 'a', { ttlMs: 1000 });
    await client.acquire(taken, 'b', { ttlMs: 1000 });
    await redis.command('RPUSH', client.lock(list), 'x');
    const replies = await client.renew(
      [held, 'a', 60_000],
      [gone, 'a', 60_000],
      [taken, 'a', 60_000],
      [list, 'a', 60_000],
    );
    expect(replies).toEqual([1, 0, 2, 2]);
    expect(Number(await redis.command('PTTL', client.lock(held)))).toBeGreaterThan(50_000);
    expect(Number(await redis.command('PTTL', client.lock(taken)))).toBeLessThanOrEqual(1000);
    expect(await redis.command('EXISTS', client.lock(gone))).toBe(0);
  });
});

describe('a full memory', () => {
  it('refuses new locks, but renews, releases and hands off', async () => {
    await using full = await startRedis({ args: ['--maxmemory-policy', 'noeviction'] });
    const locks = new ScriptClient(full);
    await locks.acquire('x', 'a');
    await locks.acquire('x', 'b', { replyAddress: '=me' });
    await locks.acquire('y', 'a');
    await full.command('CONFIG', 'SET', 'maxmemory', 1);
    await expect(locks.acquire('z', 'a')).rejects.toThrow(/OOM/);
    await expect(locks.acquire('x', 'c', { replyAddress: '=me' })).rejects.toThrow(/OOM/);
    expect(await full.command('EXISTS', locks.lock('z'))).toBe(0);
    expect(await locks.renew(['x', 'a', 60_000])).toEqual([1]);
    expect(((await locks.release('x', 'a')) as unknown[])[1]).toBe('b');
    expect(await locks.abandon('x', 'b')).toBe('released');
    expect(await locks.release('y', 'a')).toBe('released');
    expect(await full.command('EXISTS', locks.lock('x'), locks.lock('y'))).toBe(0);
  });
});
