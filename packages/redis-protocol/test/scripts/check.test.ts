import { startRedis, waitUntil } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { scripts } from '../../src/generated/scripts.ts';
import { client, fresh, number, redis, useServer } from './lab.ts';
import { ScriptClient } from './script-client.ts';

useServer();

describe('check', () => {
  it('puts a lost waiter back at its position, and serves the first when the lock is free', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    const positions = [];
    for (const id of ['b', 'c'])
      positions.push(number(await client.acquire(name, id, { replyAddress: '~x' })));
    await redis.command('DEL', client.keys(name)[2]);
    await client.check(name, '~x', [['c', positions[1] as number]]);
    await client.check(name, '~x', [['b', positions[0] as number]]);
    await redis.command('DEL', client.lock(name));
    const [reply] = (await client.check(name, '~x', [['c', positions[1] as number]])) as unknown[][];
    expect(reply?.[3]).toBe('b');
    expect(await redis.command('GET', client.lock(name))).toMatch(/^b\|\+\|/);
  });

  it('serves a free lock while memory is full', async () => {
    await using full = await startRedis({ args: ['--maxmemory-policy', 'noeviction'] });
    const locks = new ScriptClient(full);
    await locks.acquire('x', 'a');
    const position = number(await locks.acquire('x', 'b', { replyAddress: '!me' }));
    await full.command('DEL', locks.lock('x'));
    await full.command('CONFIG', 'SET', 'maxmemory', 1);
    const [reply] = (await locks.check('x', '!me', [['b', position]])) as unknown[][];
    expect(reply?.[3]).toBe('b');
  });

  it('reports a grant whose message was lost, with the time left', async () => {
    const name = fresh();
    const token = Number(await client.acquire(name, 'a', { ttlMs: 9000 }));
    const [reply] = (await client.check(name, '~x', [
      ['a', 1],
      ['b', 2],
    ])) as unknown[][];
    expect(reply?.slice(3, 5)).toEqual(['a', token]);
    expect(Number(reply?.[5])).toBeLessThanOrEqual(9000);
    expect(await redis.command('ZRANGE', client.keys(name)[2], 0, -1)).toEqual(['@~x', 'b|30000|~x|label']);
  });

  it('tells until when the hold may last: of a value of ours and of a stranger, of the first share, of none', async () => {
    const [own, shared, theirs, endless] = [fresh(), fresh(), fresh(), fresh()];
    await client.acquire(own, 'a', { ttlMs: 9_000 });
    await client.take(shared, 'long', '0:0', { ttlMs: 9_000 });
    await client.take(shared, 'short', '0:0', { ttlMs: 7_000 });
    await redis.command('SET', client.lock(theirs), 'theirs', 'PX', 9_000);
    await redis.command('SET', client.lock(endless), 'theirs');
    const left = async (name: string) => {
      const [, , , enqueued] = (await client.acquire(name, 'b', { replyAddress: '~x' })) as unknown[];
      const [reply] = (await client.check(name, '~x', [['b', 1]])) as unknown[][];
      expect(reply).toHaveLength(3);
      expect(Math.abs(Number(enqueued) - Number(reply?.[2]))).toBeLessThan(5_000);
      return Number(reply?.[2]);
    };
    for (const [name, ttlMs] of [
      [own, 9_000],
      [shared, 7_000],
      [theirs, 9_000],
    ] as const) {
      const leftMs = await left(name);
      expect(leftMs).toBeLessThanOrEqual(ttlMs);
      expect(leftMs).toBeGreaterThan(ttlMs - 5_000);
    }
    expect(await left(endless)).toBe(-1);
  });

  it('gives silent waiters a channel, at their position', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    const positions = [];
    for (const [id, replyAddress] of [
      ['b', '!me'],
      ['c', '~x'],
    ] as const) {
      positions.push(number(await client.acquire(name, id, { replyAddress })));
    }
    await client.check(name, '~me', [['b', positions[0] as number]], { former: '!me' });
    expect(await redis.command('ZRANGEBYSCORE', client.keys(name)[2], 0, '+inf')).toEqual([
      'b|30000|~me|label',
      'c|30000|~x|label',
    ]);
  });

  it('keeps waiters as silent while nobody listens to their channel', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    const position = number(await client.acquire(name, 'b', { replyAddress: '=gone' }));
    await client.check(name, '=gone', [['b', position]]);
    expect(await redis.command('ZRANGEBYSCORE', client.keys(name)[2], 0, '+inf')).toEqual([
      'b|30000|!gone|label',
    ]);
    expect(Number(await redis.command('ZSCORE', client.keys(name)[2], 'b|30000|!gone|label'))).toBe(position);
    // Who hears nothing is handed nothing by others, holds back those behind it, and takes the free lock by its own check.
    await client.acquire(name, 'c', { replyAddress: '~x' });
    expect(await client.release(name, 'a')).toBe('released');
    expect(await redis.command('EXISTS', client.lock(name))).toBe(0);
    expect(await client.acquire(name, 'd')).toBe('contended');
    await client.check(name, '=gone', [['b', position]]);
    expect(await redis.command('GET', client.lock(name))).toMatch(/^b\|/);
  });

  it.each([
    ['^me{2}', '^me{1}', '!me'],
    ['!me', '^me{1}', '!me'],
    ['~me', '^me{1}', '~me'],
  ])('moves a waiter to %s from %s, at its position, and to %s without a listener', async (to, from, now) => {
    const name = fresh();
    await client.acquire(name, 'a');
    const position = number(await client.acquire(name, 'b', { replyAddress: from }));
    await client.check(name, to, [['b', position]], { former: from });
    const queue = client.keys(name)[2];
    expect(await redis.command('ZRANGEBYSCORE', queue, 0, '+inf', 'WITHSCORES')).toEqual([
      `b|30000|${now}|label`,
      String(position),
    ]);
  });

  it('gives a waiter its sharded channel back once somebody listens there', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    const position = number(await client.acquire(name, 'b', { replyAddress: '!me' }));
    const listener = new Redis(redis.url);
    onTestFinished(() => listener.disconnect());
    await listener.ssubscribe('me{1}');
    await client.check(name, '^me{1}', [['b', position]]);
    expect(await redis.command('ZRANGEBYSCORE', client.keys(name)[2], 0, '+inf')).toEqual([
      'b|30000|^me{1}|label',
    ]);
  });

  it('marks the lock of a holder that does not know of the queue', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await client.check(name, '~x', [['b', 5]]);
    expect(await redis.command('GET', client.lock(name))).toMatch(/^a\|\+\|/);
  });

  it('answers for each resource, one with a key of another type too', async () => {
    const [good, bad] = [fresh(), fresh()];
    await client.acquire(good, 'a');
    await redis.command('RPUSH', client.lock(bad), 'x');
    const replies = (await client.run(
      scripts.check,
      [...client.keys(bad), ...client.keys(good)],
      ['5000', '~x', '', 1, 'b|30000|~x|', 1, '', 1, 'c|30000|~x|', 2, ''],
    )) as unknown[][];
    expect(replies[0]).toEqual(['failed', expect.stringMatching(/WRONGTYPE/)]);
    expect(replies[1]?.[0]).toBe('checked');
    expect(Number(replies[1]?.[1])).toBeGreaterThan(0);
  });

  it('lets a queue die with its last process', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await client.check(name, '~x', [['b', 5]], { aliveMs: 60 });
    await waitUntil(async () => (await redis.command('EXISTS', client.keys(name)[2])) === 0, {
      what: 'the end of the queue',
    });
  });
});
