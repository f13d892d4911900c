import { startRedis, waitUntil } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { scripts } from '../../src/generated/scripts.ts';
import { client, exists, expectQueues, fresh, number, redis, useServer } from './lab.ts';
import { ScriptClient, sharesOf } from './script-client.ts';

useServer();

describe('operating', () => {
  it('force-release ends all shares, or one, and serves the next', async () => {
    const name = fresh();
    const tokens = [];
    for (const id of ['a', 'b']) tokens.push(String(await client.take(name, id, '4:2')));
    await client.take(name, 'c', '4:2', { replyAddress: '=me' });
    expect(await client.forceRelease(name, 'nobody')).toBe('nothing-ended');
    const ended = fresh();
    for (const id of ['d', 'e']) await client.take(ended, id, '0:0');
    await client.expire(ended, 'd');
    const [, , , , reported] = (await client.forceRelease(ended)) as unknown[];
    expect(sharesOf(reported as string[]).map(({ id }) => id)).toEqual(['e']);
    const one = (await client.forceRelease(name, 'a')) as unknown[];
    expect(sharesOf(one[4] as string[])).toMatchObject([
      { id: 'a', weight: 2, label: 'label', token: BigInt(tokens[0] as string) },
    ]);
    expect(one[5]).toBe('c');
    const all = (await client.forceRelease(name)) as unknown[][];
    expect(sharesOf(all[4] as string[]).map(({ id }) => id)).toEqual(['b', 'c']);
    expect(await exists(name)).toBe(0);
  });

  it('abandon ends one share, whatever is known of it', async () => {
    const name = fresh();
    for (const id of ['a', 'ab', 'b']) await client.take(name, id, '4:1');
    expect(await client.abandon(name, 'a')).toBe('released');
    expect(await client.abandon(name, 'a')).toBe('not-held');
    expect(await client.mark(name)).toBe('*4|2');
    expect((await client.inspect(name)).holders).toEqual(['ab', 'b']);
  });

  it('a check reports shares that were granted, and serves the waiters that fit', async () => {
    const name = fresh();
    const token = Number(await client.take(name, 'a', '4:1', { ttlMs: 9_000 }));
    await client.take(name, 'b', '4:3', { ttlMs: 500 });
    const positions = [];
    for (const id of ['c', 'd'])
      positions.push(number(await client.take(name, id, '4:2', { replyAddress: '~x' })));
    await waitUntil(async () => (await client.inspect(name)).holders.length === 1, { what: 'the end of b' });
    const [reply] = (await client.run(scripts.check, client.keys(name), [
      '5000',
      '~x',
      '',
      3,
      ...['a|30000:1|~x|label', 1, 4, 'c|30000:2|~x|label', positions[0] as number, 4],
      ...['d|30000:2|~x|label', positions[1] as number, 4],
    ])) as unknown[][];
    expect(reply?.slice(3, 5)).toEqual(['a', token]);
    expect(reply?.[5]).toBeLessThanOrEqual(9_000);
    expect([reply?.[6], reply?.[8], reply?.length]).toEqual(['c', 30_000, 9]);
    expect(await client.mark(name)).toBe('*4|3');
  });

  it('a waiter that holds others back is passed over when nobody listens for it', async () => {
    const name = fresh();
    await client.take(name, 'r', '0:0');
    await client.acquire(name, 'w', { replyAddress: '=gone' });
    await client.take(name, 'r2', '0:0', { replyAddress: '=gone-too' });
    const position = number(await client.take(name, 'r3', '0:0', { replyAddress: '!me' }));
    const [reply] = (await client.run(scripts.check, client.keys(name), [
      '5000',
      '!me',
      '',
      ...[1, 'r3|30000:0|!me|label', position, ''],
    ])) as unknown[][];
    expect(reply?.[3]).toBe('r3');
    const { holders, waiters } = await client.inspect(name);
    expect([holders.sort(), waiters]).toEqual([['r', 'r3'], []]);
  });

  it('a waiter whose channel nobody listens to takes no share', async () => {
    const [permits, readers] = [fresh(), fresh()];
    await client.take(permits, 'a', '4:4');
    await client.take(permits, 'gone', '4:3', { replyAddress: '=gone' });
    await client.take(permits, 'b', '4:2', { replyAddress: '!me' });
    expect(((await client.releaseShare(permits, 'a', 4)) as unknown[])[1]).toBe('b');
    expect(await client.mark(permits)).toBe('*4|2');
    const beside = fresh();
    await client.take(beside, 'stays', '4:1');
    await client.take(beside, 'a', '4:3');
    await client.take(beside, 'gone', '4:3', { replyAddress: '=gone' });
    await client.take(beside, 'b', '4:2', { replyAddress: '!me' });
    expect(((await client.releaseShare(beside, 'a', 3)) as unknown[])[1]).toBe('b');
    expect(await client.mark(beside)).toBe('*4|3');
    await client.acquire(readers, 'w');
    await client.take(readers, 'gone', '0:0', { replyAddress: '=gone' });
    await client.acquire(readers, 'w2', { replyAddress: '!me' });
    expect(((await client.release(readers, 'w')) as unknown[])[1]).toBe('w2');
  });

  it('another type at a side key is an error, before anything is written, and stays', async () => {
    for (const side of [2, 3]) {
      const name = fresh();
      const key = client.allKeys(name)[side] as string;
      await redis.command('RPUSH', key, 'theirs');
      await expectQueues(name);
      for (const replyAddress of [undefined, '~x']) {
        const options = replyAddress === undefined ? {} : { replyAddress };
        await expect(client.take(name, 'a', '0:0', options)).rejects.toThrow(/WRONGTYPE/);
      }
      await expect(client.many([name, 'a', '0:0'])).rejects.toThrow(/WRONGTYPE/);
      expect(await redis.command('EXISTS', client.lock(name))).toBe(0);
      if (side === 3) {
        // An exclusive lock does not need it.
        expect(Number(await client.acquire(name, 'w'))).toBeGreaterThan(0);
        await expect(client.downgrade(name, 'w')).rejects.toThrow(/WRONGTYPE/);
        expect(await redis.command('GET', client.lock(name))).toMatch(/^w\|/);
      }
      expect(await redis.command('LRANGE', key, 0, -1)).toEqual(['theirs']);
    }
    const [good, bad] = [fresh(), fresh()];
    await client.take(good, 'a', '0:0');
    await client.take(bad, 'a', '0:0');
    await redis.command('DEL', client.holders(bad));
    await redis.command('RPUSH', client.holders(bad), 'theirs');
    expect(await client.renewShares([bad, 'a', 9_000], [good, 'a', 9_000])).toEqual([2, expect.any(Number)]);
    const replies = (await client.run(
      scripts.check,
      [...client.keys(bad), ...client.keys(good)],
      ['5000', '~x', '', 1, 'b|30000:0|~x|', 1, '', 1, 'c|30000:0|~x|', 2, ''],
    )) as unknown[][];
    expect(replies[0]).toEqual(['failed', expect.stringMatching(/WRONGTYPE/)]);
    expect(replies[1]?.[3]).toBe('c');
  });

  it('a full memory refuses new shares, but renews, releases, downgrades and hands off', async () => {
    await using full = await startRedis({ args: ['--maxmemory-policy', 'noeviction'] });
    const locks = new ScriptClient(full);
    await locks.take('x', 'a', '2:1');
    await locks.take('x', 'b', '2:1');
    await locks.take('x', 'c', '2:1', { replyAddress: '=me' });
    await locks.acquire('y', 'w');
    await locks.take('y', 'r', '0:0', { replyAddress: '=me' });
    await full.command('CONFIG', 'SET', 'maxmemory', 1);
    await expect(locks.take('z', 'a', '0:0')).rejects.toThrow(/OOM/);
    expect(await locks.renewShares(['x', 'a', 60_000])).toEqual([expect.any(Number)]);
    expect(((await locks.releaseShare('x', 'a', 1)) as unknown[])[1]).toBe('c');
    expect(((await locks.downgrade('y', 'w')) as unknown[])[2]).toBe('r');
    expect(await locks.releaseShare('y', 'w')).toBe('released');
    expect(await locks.abandon('x', 'b')).toBe('released');
    expect(await full.command('EXISTS', locks.lock('z'))).toBe(0);
  });
});

describe('shares that the queue has twice', () => {
  it('keep their token, and take no second one', async () => {
    for (const [holder, waiter, mark] of [
      ['0:', '0:0', '*0|0'],
      ['4:4', '4:2', '*4|2'],
    ] as const) {
      const name = fresh();
      const [, , queue] = client.keys(name);
      await client.take(name, 'w', holder);
      await client.take(name, 'a', waiter, { replyAddress: '=me' });
      // As a check puts it back that the network repeated late.
      const queued = await redis.command('ZRANGEBYSCORE', queue, '0', '+inf', 'WITHSCORES');
      const [entry = '', position] = queued as string[];
      await redis.command('ZADD', queue, String(Number(position) + 1), entry.replace('|30000', '|29000'));
      const handed = await (holder === '0:' ? client.release(name, 'w') : client.releaseShare(name, 'w', 4));
      expect(handed, waiter).toEqual(['released', 'a', expect.any(Number)]);
      expect(await client.token(name, 'a')).toBe(String((handed as unknown[])[2]));
      expect(await client.mark(name)).toBe(mark);
      expect((await client.inspect(name)).waiters).toEqual([]);
    }
  });
});
