import { describe, expect, it } from 'vitest';
import { scripts } from '../../src/generated/scripts.ts';
import { client, fresh, isGranted, redis, useServer, waits } from './lab.ts';
import { sharesOf } from './script-client.ts';

useServer();

describe('the mark', () => {
  it.each(['0:0', '99:2'])(
    'has bounds of the ends of all, and their use, whatever comes and goes (%s)',
    async (mode) => {
      const name = fresh();
      const weight = mode === '0:0' ? 0 : 2;
      const live = Array.from({ length: 40 }, (_, at) => `r${at}`);
      await Promise.all(
        live.map((id, at) => client.take(name, id, mode, { ttlMs: at % 4 ? 60_000 : 20_000 })),
      );
      while (live.length > 0) {
        const [limit, used, , first, last] = String(await redis.command('GET', client.lock(name))).split('|');
        expect([limit, used]).toEqual([`*${mode.split(':')[0]}`, String(weight * live.length)]);
        const shares = sharesOf((await redis.command('HGETALL', client.holders(name))) as string[]);
        expect(shares.map(({ id }) => id).sort()).toEqual([...live].sort());
        const ends = shares.map(({ endsAt }) => endsAt);
        expect(Number(first)).toBeLessThanOrEqual(Math.min(...ends));
        expect(Number(last)).toBeGreaterThanOrEqual(Math.max(...ends));
        // A millisecond of the clock may pass between the two of a script.
        const until = Number(await redis.command('PEXPIRETIME', client.lock(name)));
        expect(until).toBeGreaterThanOrEqual(Number(last));
        expect(Number(await redis.command('PEXPIRETIME', client.holders(name)))).toBeGreaterThan(until);
        const [gone] = live.splice(live.length % 3 && live.length - 1, 1) as [string];
        if (live.length % 2) await client.renewShares(...live.map((id) => [name, id, 50_000] as const));
        expect(await client.releaseShare(name, gone, weight)).toBe('released');
      }
      expect(await redis.command('EXISTS', client.lock(name), client.holders(name))).toBe(0);
    },
  );

  it('is counted anew once the first of them may have ended, and then left alone', async () => {
    const name = fresh();
    // Long enough for the next three requests on a busy machine.
    await client.take(name, 'dead', '9:4', { ttlMs: 1_000 });
    await client.take(name, 'live', '9:3', { ttlMs: 30_000 });
    await client.take(name, 'long', '9:1', { ttlMs: 90_000 });
    const before = String(await redis.command('GET', client.lock(name)));
    await isGranted(name, 'next', '9:5', { ttlMs: 60_000 });
    const after = String(await redis.command('GET', client.lock(name)));
    expect(await client.mark(name)).toBe('*9|9');
    const counted = Number(after.split('|')[3]) - Number(before.split('|')[3]);
    expect(counted).toBeGreaterThan(20_000);
    expect(counted).toBeLessThan(40_000);
    await client.renewShares([name, 'live', 30_000]);
    expect(await redis.command('GET', client.lock(name))).toBe(after);
  });

  it('stays valid when a heavy share has ended and the next waiter still does not fit', async () => {
    const name = fresh();
    const weights = { heavy: 5, b: 2, c: 3 };
    for (const [id, weight] of Object.entries(weights)) await client.take(name, id, `10:${weight}`);
    await client.expire(name, 'heavy');
    expect(waits(await client.take(name, 'next', '10:8', { replyAddress: '!me' }))).toBe(true);
    expect(await redis.command('GET', client.lock(name))).toMatch(/^\*10\|5\|\+\|\d{13}\|\d{13}$/);
    const renewed = await client.renewShares([name, 'b', 30_000], [name, 'c', 30_000]);
    expect(renewed).toEqual([1, 1]);
    expect(await client.releaseShare(name, 'b', 2)).toBe('released');
    expect(await client.inspect(name)).toMatchObject({ holders: ['c'], waiters: ['next'] });
    expect(((await client.releaseShare(name, 'c', 3)) as unknown[])[1]).toBe('next');
  });

  it.each(['*abc', '*5|3|-|abc'])(
    'is not what a stranger wrote (%s): nobody changes or frees it',
    async (theirs) => {
      const name = fresh();
      await client.take(name, 'r', '0:0');
      for (const id of ['x', 'y']) await client.acquire(name, id, { replyAddress: '!me' });
      await redis.command('SET', client.lock(name), theirs, 'PX', 30_000);
      expect(await client.abandon(name, 'x', { replyAddress: '!me' })).toBe('not-held');
      expect(await client.releaseShare(name, 'r')).toBe('not-held');
      expect(waits(await client.acquire(name, 'z', { replyAddress: '!me' }))).toBe(true);
      expect(await client.abandon(name, 'r')).toBe('not-held');
      expect(await redis.command('GET', client.lock(name))).toBe(theirs);
      expect((await client.inspect(name)).waiters).toEqual(['y', 'z']);
      for (const id of ['y', 'z']) await client.abandon(name, id, { replyAddress: '!me' });
      expect(await redis.command('EXISTS', client.keys(name)[2])).toBe(0);
    },
  );
});

it('a waiter that stands in the queue twice takes its permits once', async () => {
  const name = fresh();
  await client.take(name, 'a', '4:4');
  for (const replyAddress of ['~x', '~y']) await client.take(name, 'b', '4:2', { replyAddress });
  expect(await redis.command('ZCOUNT', client.keys(name)[2], 0, '+inf')).toBe(2);
  await client.releaseShare(name, 'a', 4);
  expect((await client.inspect(name)).holders).toEqual(['b']);
  expect(await client.mark(name)).toBe('*4|2');
});

describe('a slot that is being migrated', () => {
  it('renews a share one key at a time, and ends it so that the next script frees its weight', async () => {
    const name = fresh();
    const holders = client.holders(name);
    const token = String(await client.take(name, 'a', '5:3', { ttlMs: 60_000 }));
    const other = String(await client.take(name, 'b', '5:1', { ttlMs: 60_000 }));
    expect(await client.run(scripts.renewPart, [client.lock(name)], [600_000])).toBe(1);
    expect(await client.run(scripts.renewPart, [holders], [600_000, 'a', token])).toBe(1);
    expect(await client.run(scripts.renewPart, [holders], [600_000, 'a', other])).toBe(2);
    // Scripts that come after it must know how long the share lasts.
    await client.take(name, 'brief', '5:1');
    await client.releaseShare(name, 'brief', 1);
    expect(await client.run(scripts.renewPart, [holders], [600_000, 'x', token])).toBe(2);
    expect(Number(await redis.command('PTTL', client.lock(name)))).toBeGreaterThan(590_000);
    expect(Number(await redis.command('PTTL', holders))).toBeGreaterThan(590_000);
    expect(await redis.command('HDEL', holders, 'a')).toBe(1);
    expect(await client.run(scripts.renewPart, [holders], [600_000, 'a', token])).toBe(2);
    expect(await client.take(name, 'early', '5:3')).toBe('contended');
    expect(await client.run(scripts.releaseKey, [client.lock(name)], ['a'])).toBe('not-held');
    expect(Number(await redis.command('PTTL', client.lock(name)))).toBeGreaterThan(590_000);
    expect(Number(await client.take(name, 'c', '5:3'))).toBeGreaterThan(0);
    expect(await client.releaseShare(name, 'a', 3)).toBe('not-held');
    await client.expire(name, 'b');
    expect(await client.run(scripts.renewPart, [holders], [600_000, 'b', other])).toBe(2);
    await redis.command('SET', client.lock(name), 'theirs');
    expect(await client.run(scripts.renewPart, [client.lock(name)], [600_000])).toBe(2);
    await redis.command('DEL', client.lock(name));
    expect(await client.run(scripts.renewPart, [client.lock(name)], [600_000])).toBe(0);
  });
});
