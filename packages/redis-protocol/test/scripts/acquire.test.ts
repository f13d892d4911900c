import { waitUntil } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { scripts } from '../../src/generated/scripts.ts';
import { client, fresh, number, redis, useServer, word } from './lab.ts';

useServer();

async function isDead(name: string, replyAddress: string): Promise<boolean> {
  const [seconds, micros] = (await redis.command('TIME')) as [string, string];
  const until = -Number(await redis.command('ZSCORE', client.keys(name)[2], `@${replyAddress}`));
  return Number(seconds) * 1000 + Number(micros) / 1000 > until + 1;
}

describe('acquire', () => {
  it('takes a free lock for its ttl and gives a token', async () => {
    const name = fresh();
    const token = await client.acquire(name, 'a');
    expect(Number(token)).toBeGreaterThan(1.6e15);
    expect(await redis.command('GET', client.lock(name))).toBe(`a|-|${token}|label`);
    expect(Number(await redis.command('PTTL', client.lock(name)))).toBeGreaterThan(29_000);
  });

  it('gives the same token and what is left to the id that holds it', async () => {
    const name = fresh();
    const token = await client.acquire(name, 'a', { ttlMs: 30_000 });
    const again = (await client.acquire(name, 'a', { ttlMs: 60_000 })) as unknown[];
    expect(again.slice(0, 2)).toEqual(['granted', Number(token)]);
    expect(again[2]).toBeLessThanOrEqual(30_000);
  });

  it('leaves nothing behind when contended and not asked to wait', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    expect(await client.acquire(name, 'b')).toBe('contended');
    expect(await redis.command('EXISTS', client.keys(name)[2])).toBe(0);
    expect(await redis.command('GET', client.lock(name))).toMatch(/^a\|-\|/);
  });

  it('does not take one id for another that begins like it', async () => {
    const name = fresh();
    await client.acquire(name, 'ab');
    expect(await client.acquire(name, 'a')).toBe('contended');
    expect(await client.release(name, 'a')).toBe('not-held');
    expect(await client.renew([name, 'a', 1000])).toEqual([2]);
  });

  it('joins the queue, marks the holder without touching its ttl, and keeps its position when repeated', async () => {
    const name = fresh();
    await client.acquire(name, 'a', { ttlMs: 20_000 });
    const waiting = await client.acquire(name, 'b', { replyAddress: '~x' });
    expect(word(waiting)).toBe('waiting');
    expect(await redis.command('GET', client.lock(name))).toMatch(/^a\|\+\|/);
    const left = Number(await redis.command('PTTL', client.lock(name)));
    expect(left).toBeGreaterThan(18_000);
    expect(left).toBeLessThanOrEqual(20_000);
    await client.acquire(name, 'c', { replyAddress: '~x' });
    expect(number(await client.acquire(name, 'b', { replyAddress: '~x' }))).toBe(number(waiting));
  });

  it('never overtakes a live queue, and serves it when the lock is free', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { replyAddress: '~x' });
    await redis.command('DEL', client.lock(name));
    expect(await client.acquire(name, 'c')).toBe('contended');
    expect(await redis.command('GET', client.lock(name))).toMatch(/^b\|-\|/);
    expect(await redis.command('EXISTS', client.keys(name)[2])).toBe(0);
  });

  it('waits behind a live queue of a free lock', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { replyAddress: '~x' });
    await redis.command('DEL', client.lock(name));
    expect(word(await client.acquire(name, 'c', { replyAddress: '~y' }))).toBe('waiting');
    expect(await redis.command('GET', client.lock(name))).toMatch(/^b\|\+\|/);
  });

  it('passes over waiters whose process is no longer alive', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await client.run(scripts.acquire, client.keys(name), ['b', 30_000, 'label', '!dead', 1]);
    await client.acquire(name, 'c', { replyAddress: '~x' });
    await waitUntil(() => isDead(name, '!dead'), { what: 'the end of the liveness' });
    await client.release(name, 'a');
    expect(await redis.command('GET', client.lock(name))).toMatch(/^c\|/);
  });

  it('takes a lock whose whole queue is dead, asked to wait or not', async () => {
    for (const options of [{}, { replyAddress: '~y' }]) {
      const name = fresh();
      await client.acquire(name, 'a');
      await client.run(scripts.acquire, client.keys(name), ['b', 30_000, 'label', '!dead', 50]);
      await redis.command('PERSIST', client.keys(name)[2]);
      await redis.command('DEL', client.lock(name));
      await waitUntil(() => isDead(name, '!dead'), { what: 'the end of the liveness' });
      // Another queue of the slot is still alive.
      const [token, horizon] = String(await redis.command('GET', client.keys(name)[1])).split(';');
      await redis.command('SET', client.keys(name)[1], `${token};${Number(horizon) + 60_000}`);
      const reply = await client.acquire(name, 'c', options);
      expect(word(reply)).toBe('granted');
      expect(await redis.command('GET', client.lock(name))).toMatch(/^c\|/);
      expect(Number(await redis.command('PTTL', client.lock(name)))).toBeGreaterThan(29_000);
    }
  });

  it("is excluded by a stranger's lock and never changes its value", async () => {
    const name = fresh();
    for (const value of ['some-uuid', 'a|-|x|', 'x|y', '']) {
      await redis.command('SET', client.lock(name), value, 'PX', 30_000);
      expect(await client.acquire(name, 'b')).toBe('contended');
      expect(word(await client.acquire(name, 'b', { replyAddress: '~x' }))).toBe('waiting');
      expect(await client.release(name, 'b')).toBe('not-held');
      await client.check(name, '~x', [['b', 1]]);
      expect(await redis.command('GET', client.lock(name))).toBe(value);
      await client.abandon(name, 'b', { replyAddress: '~x' });
    }
  });

  it('errs on a key of another type and leaves it alone', async () => {
    const name = fresh();
    await redis.command('RPUSH', client.lock(name), 'x');
    for (const attempt of [
      () => client.acquire(name, 'a'),
      () => client.acquire(name, 'a', { replyAddress: '~x' }),
      () => client.release(name, 'a'),
      () => client.abandon(name, 'a'),
    ]) {
      await expect(attempt()).rejects.toThrow(/WRONGTYPE/);
    }
    expect(await redis.command('TYPE', client.lock(name))).toBe('list');
    expect(await redis.command('EXISTS', client.keys(name)[2])).toBe(0);
  });
});

describe('a waiter of a process that has one in the queue already', () => {
  const join = (name: string, id: string, aliveMs: number, ...refreshed: readonly 'refreshed'[]) => {
    const enqueue = ['=me', aliveMs, '', ...refreshed];
    return client.run(scripts.acquire, client.keys(name), [id, 30_000, 'label', ...enqueue]);
  };

  it('joins behind it, and is not told when the hold can end', async () => {
    const name = fresh();
    await client.acquire(name, 'a', { ttlMs: 20_000 });
    const position = number(await join(name, 'b', 5000));
    const reply = await join(name, 'c', 5000, 'refreshed');
    const next = number(reply);
    expect(next).toBeGreaterThan(position);
    expect(reply).toEqual(['waiting', next, next, -1]);
    expect(await client.release(name, 'a')).toEqual(['released', 'b', expect.any(Number)]);
    expect(await client.release(name, 'b')).toEqual(['released', 'c', expect.any(Number)]);
  });

  it('keeps its process alive for as long as any other', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await join(name, 'b', 1);
    await join(name, 'c', 5000, 'refreshed');
    await waitUntil(async () => !(await isDead(name, '=me')), { what: 'its liveness' });
  });

  it('is told when it was wrong: the queue ends by itself again', async () => {
    const name = fresh();
    await client.acquire(name, 'a', { ttlMs: 20_000 });
    const [status, , , left] = (await join(name, 'b', 5000, 'refreshed')) as unknown[];
    expect(status).toBe('waiting');
    expect(left).toBeGreaterThan(10_000);
    expect(Number(await redis.command('PTTL', client.keys(name)[2]))).toBeGreaterThan(4_000);
  });

  it('takes the lock when nobody holds it or waits any more', async () => {
    const name = fresh();
    expect(Number(await join(name, 'b', 5000, 'refreshed'))).toBeGreaterThan(1.6e15);
    expect(await redis.command('GET', client.lock(name))).toMatch(/^b\|-\|/);
  });

  it('costs four commands with the default options, and a hand-off within the process six', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await join(name, 'b', 3000);
    const called = async (step: () => Promise<unknown>) => {
      await redis.command('CONFIG', 'RESETSTAT');
      await step();
      const stats = String(await redis.command('INFO', 'commandstats'));
      const calls = [...stats.matchAll(/^cmdstat_(\w+)\S*:calls=(\d+)/gm)]
        .filter(([, command]) => command !== 'eval' && command !== 'config')
        .map(([, command, count]) => `${command} ${count}`);
      return calls.sort();
    };
    expect(await called(() => join(name, 'c', 3000, 'refreshed'))).toEqual([
      'get 1',
      'getset 1',
      'time 1',
      'zadd 1',
    ]);
    expect(await called(() => client.release(name, 'a'))).toEqual([
      'get 1',
      'getset 1',
      'set 1',
      'time 1',
      'zrangebyscore 1',
      'zrem 1',
    ]);
  });
});
