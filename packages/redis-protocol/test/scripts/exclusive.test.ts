import { startRedis, waitUntil } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { scripts } from '../../src/generated/scripts.ts';
import { client, first, fresh, redis } from './lab.ts';
import { ScriptClient } from './script-client.ts';

async function isDead(name: string, notify: string): Promise<boolean> {
  const [seconds, micros] = (await redis.command('TIME')) as [string, string];
  const until = -Number(await redis.command('ZSCORE', client.keys(name)[2], `@${notify}`));
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
    const again = (await client.acquire(name, 'a', { ttlMs: 60_000 })) as number[];
    expect(again[0]).toBe(Number(token));
    expect(again[1]).toBeLessThanOrEqual(30_000);
  });

  it('leaves nothing behind when contended and not asked to wait', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    expect(await client.acquire(name, 'b')).toBe(0);
    expect(await redis.command('EXISTS', client.keys(name)[2])).toBe(0);
    expect(await redis.command('GET', client.lock(name))).toMatch(/^a\|-\|/);
  });

  it('does not take one id for another that begins like it', async () => {
    const name = fresh();
    await client.acquire(name, 'ab');
    expect(await client.acquire(name, 'a')).toBe(0);
    expect(await client.release(name, 'a')).toBe(0);
    expect(await client.renew([name, 'a', 1000])).toEqual([2]);
  });

  it('joins the queue, marks the holder without touching its ttl, and keeps its position when repeated', async () => {
    const name = fresh();
    await client.acquire(name, 'a', { ttlMs: 20_000 });
    const waiting = (await client.acquire(name, 'b', { notify: '~x' })) as number[];
    expect(waiting[0]).toBeLessThan(0);
    expect(await redis.command('GET', client.lock(name))).toMatch(/^a\|\+\|/);
    const left = Number(await redis.command('PTTL', client.lock(name)));
    expect(left).toBeGreaterThan(18_000);
    expect(left).toBeLessThanOrEqual(20_000);
    await client.acquire(name, 'c', { notify: '~x' });
    expect(first(await client.acquire(name, 'b', { notify: '~x' }))).toBe(waiting[0]);
  });

  it('never overtakes a live queue, and serves it when the lock is free', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { notify: '~x' });
    await redis.command('DEL', client.lock(name));
    expect(await client.acquire(name, 'c')).toBe(0);
    expect(await redis.command('GET', client.lock(name))).toMatch(/^b\|-\|/);
    expect(await redis.command('EXISTS', client.keys(name)[2])).toBe(0);
  });

  it('waits behind a live queue of a free lock', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { notify: '~x' });
    await redis.command('DEL', client.lock(name));
    expect(first(await client.acquire(name, 'c', { notify: '~y' }))).toBeLessThan(0);
    expect(await redis.command('GET', client.lock(name))).toMatch(/^b\|\+\|/);
  });

  it('passes over waiters whose process is no longer alive', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await client.run(scripts.acquire, client.keys(name), ['b', 30_000, 'label', '1|!dead']);
    await client.acquire(name, 'c', { notify: '~x' });
    await waitUntil(() => isDead(name, '!dead'), { what: 'the end of the liveness' });
    await client.release(name, 'a');
    expect(await redis.command('GET', client.lock(name))).toMatch(/^c\|/);
  });

  it('takes a lock whose whole queue is dead, asked to wait or not', async () => {
    for (const options of [{}, { notify: '~y' }]) {
      const name = fresh();
      await client.acquire(name, 'a');
      await client.run(scripts.acquire, client.keys(name), ['b', 30_000, 'label', '50|!dead']);
      await redis.command('PERSIST', client.keys(name)[2]);
      await redis.command('DEL', client.lock(name));
      await waitUntil(() => isDead(name, '!dead'), { what: 'the end of the liveness' });
      // Another queue of the slot is still alive.
      const [token, horizon] = String(await redis.command('GET', client.keys(name)[1])).split(';');
      await redis.command('SET', client.keys(name)[1], `${token};${Number(horizon) + 60_000}`);
      const reply = await client.acquire(name, 'c', options);
      expect(Number(Array.isArray(reply) ? reply[0] : reply)).toBeGreaterThan(0);
      expect(await redis.command('GET', client.lock(name))).toMatch(/^c\|/);
      expect(Number(await redis.command('PTTL', client.lock(name)))).toBeGreaterThan(29_000);
    }
  });

  it("is excluded by a stranger's lock and never changes its value", async () => {
    const name = fresh();
    for (const value of ['some-uuid', 'a|-|x|', 'x|y', '']) {
      await redis.command('SET', client.lock(name), value, 'PX', 30_000);
      expect(await client.acquire(name, 'b')).toBe(0);
      expect(first(await client.acquire(name, 'b', { notify: '~x' }))).toBeLessThan(0);
      expect(await client.release(name, 'b')).toBe(0);
      await client.check(name, '~x', [['b', 1]]);
      expect(await redis.command('GET', client.lock(name))).toBe(value);
      await client.abandon(name, 'b', { notify: '~x' });
    }
  });

  it('errs on a key of another type and leaves it alone', async () => {
    const name = fresh();
    await redis.command('RPUSH', client.lock(name), 'x');
    for (const attempt of [
      () => client.acquire(name, 'a'),
      () => client.acquire(name, 'a', { notify: '~x' }),
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
  const join = (name: string, id: string, enqueue: string) =>
    client.run(scripts.acquire, client.keys(name), [id, 30_000, 'label', enqueue]);

  it('joins behind it, and is not told when the hold can end', async () => {
    const name = fresh();
    await client.acquire(name, 'a', { ttlMs: 20_000 });
    const [position] = (await join(name, 'b', '5000|=me')) as number[];
    const [next, last, left] = (await join(name, 'c', '+5000|=me')) as number[];
    expect(next).toBeLessThan(position as number);
    expect([last, left]).toEqual([-(next as number), -1]);
    expect(await client.release(name, 'a')).toEqual(['b', expect.any(Number)]);
    expect(await client.release(name, 'b')).toEqual(['c', expect.any(Number)]);
  });

  it('keeps its process alive for as long as any other', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await join(name, 'b', '1|=me');
    await join(name, 'c', '+5000|=me');
    await waitUntil(async () => !(await isDead(name, '=me')), { what: 'its liveness' });
  });

  it('is told when it was wrong: the queue ends by itself again', async () => {
    const name = fresh();
    await client.acquire(name, 'a', { ttlMs: 20_000 });
    const [position, , left] = (await join(name, 'b', '+5000|=me')) as number[];
    expect(position).toBeLessThan(0);
    expect(left).toBeGreaterThan(10_000);
    expect(Number(await redis.command('PTTL', client.keys(name)[2]))).toBeGreaterThan(4_000);
  });

  it('takes the lock when nobody holds it or waits any more', async () => {
    const name = fresh();
    expect(Number(await join(name, 'b', '+5000|=me'))).toBeGreaterThan(1.6e15);
    expect(await redis.command('GET', client.lock(name))).toMatch(/^b\|-\|/);
  });

  it('costs four commands with the default options, and a hand-off within the process six', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await join(name, 'b', '3000|=me');
    const called = async (step: () => Promise<unknown>) => {
      await redis.command('CONFIG', 'RESETSTAT');
      await step();
      const stats = String(await redis.command('INFO', 'commandstats'));
      const calls = [...stats.matchAll(/^cmdstat_(\w+)\S*:calls=(\d+)/gm)]
        .filter(([, command]) => command !== 'eval' && command !== 'config')
        .map(([, command, count]) => `${command} ${count}`);
      return calls.sort();
    };
    expect(await called(() => join(name, 'c', '+3000|=me'))).toEqual([
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

describe('the time until which queues may exist in a slot', () => {
  const horizonOf = async (name: string) =>
    String(await redis.command('GET', client.keys(name)[1])).split(';')[1];

  it('is never moved back: not by a waiter, a hand-off or a grant', async () => {
    const name = fresh();
    const [, token] = client.keys(name);
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { notify: '=me' });
    const [last, horizon] = String(await redis.command('GET', token)).split(';');
    const later = String(Number(horizon) + 60_000);
    await redis.command('SET', token, `${last};${later}`);
    await client.acquire(name, 'c', { notify: '=me' });
    expect(await horizonOf(name)).toBe(later);
    await client.release(name, 'a');
    expect(await horizonOf(name)).toBe(later);
    await client.release(name, 'b');
    await client.release(name, 'c');
    await client.acquire(name, 'd');
    expect(await horizonOf(name)).toBe(later);
    // Where the number is ahead of the time too.
    await redis.command('SET', token, `${Number(last) + 60_000_000};${later}`);
    await client.acquire(name, 'e', { notify: '=me' });
    expect(await redis.command('GET', token)).toBe(`${Number(last) + 60_000_001};${later}`);
  });
});

describe('tokens', () => {
  it('rise with every holder, also when the stored one is ahead of the clock', async () => {
    const name = fresh();
    const ahead = 9_007_199_254_000_000n - 7_000_000_000_000_000n + 1_000_000_000_000_000n;
    await redis.command('SET', client.keys(name)[1], ahead.toString());
    const tokens: bigint[] = [ahead];
    for (const id of ['a', 'b', 'c']) {
      tokens.push(BigInt(String(await client.acquire(name, id))));
      await client.release(name, id);
    }
    for (let at = 1; at < tokens.length; at++) expect(tokens[at]).toBeGreaterThan(tokens[at - 1] as bigint);
    expect(tokens[3]).toBe(ahead + 3n);
    await client.acquire(name, 'd');
    const position = -first(await client.acquire(name, 'e', { notify: '=me' }));
    const [, handed] = (await client.release(name, 'd')) as [string, number];
    expect(BigInt(position)).toBe(ahead + 5n);
    expect(BigInt(handed)).toBe(ahead + 6n);
    expect(await redis.command('GET', client.keys(name)[1])).toMatch(new RegExp(`^${handed}(;|$)`));
  });

  it('heal a token key that cannot be read', async () => {
    for (const spoil of [
      ['SET', 'x'],
      ['RPUSH', 'x'],
    ] as const) {
      const name = fresh();
      const [, token] = client.keys(name);
      await redis.command('DEL', token);
      await redis.command(spoil[0], token, spoil[1]);
      expect(Number(await client.acquire(name, 'a'))).toBeGreaterThan(1.6e15);
      expect(await redis.command('GET', token)).toMatch(/^\d+$/);
    }
  });

  it('are written whole: no exponent, no fraction', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { notify: '~x' });
    expect(await redis.command('GET', client.keys(name)[1])).toMatch(/^\d{16};\d{13}$/);
    await client.release(name, 'a');
    expect(await redis.command('GET', client.lock(name))).toMatch(/^b\|-\|\d{16}\|label$/);
  });
});

describe('release', () => {
  it('frees what this id holds and nothing else', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    expect(await client.release(name, 'b')).toBe(0);
    expect(await client.run(scripts.releaseKey, [client.lock(name)], ['b'])).toBe(0);
    expect(await client.release(name, 'a')).toBe(1);
    expect(await client.release(name, 'a')).toBe(0);
    expect(await redis.command('EXISTS', client.lock(name))).toBe(0);
  });

  it('hands off in order, for the ttl of the waiter, with a new token', async () => {
    const name = fresh();
    const token = Number(await client.acquire(name, 'a'));
    for (const id of ['b', 'c', 'd']) await client.acquire(name, id, { notify: '=me', ttlMs: 9_000 });
    let last = token;
    for (const [from, to] of [
      ['a', 'b'],
      ['b', 'c'],
      ['c', 'd'],
    ] as const) {
      const reply = (await client.release(name, from)) as unknown[];
      expect(reply[0]).toBe(to);
      expect(Number(reply[1])).toBeGreaterThan(last);
      last = Number(reply[1]);
      const left = Number(await redis.command('PTTL', client.lock(name)));
      expect(left).toBeGreaterThan(8_000);
      expect(left).toBeLessThanOrEqual(9_000);
    }
    expect(await client.release(name, 'd')).toBe(1);
    expect(await redis.command('EXISTS', client.lock(name), client.keys(name)[2])).toBe(0);
  });

  it('passes over a waiter whose channel nobody listens to, but not in a cluster', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { notify: '=gone' });
    await client.acquire(name, 'c', { notify: '~cluster' });
    expect(await client.release(name, 'a')).toEqual([]);
    expect(await redis.command('GET', client.lock(name))).toMatch(/^c\|/);
  });

  it('passes over a waiter whose sharded channel nobody listens to', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { notify: '^gone{1}' });
    await client.acquire(name, 'c', { notify: '~silent' });
    expect(await client.release(name, 'a')).toEqual([]);
    expect(await redis.command('GET', client.lock(name))).toMatch(/^c\|/);
  });

  it('publishes to the sharded channel of a waiter, and not to the plain one of that name', async () => {
    const name = fresh();
    const heard: unknown[][] = [];
    const listener = new Redis(redis.url);
    onTestFinished(() => listener.disconnect());
    listener.on('smessage', (...message) => heard.push(['sharded', ...message]));
    listener.on('message', (...message) => heard.push(['plain', ...message]));
    await listener.ssubscribe('told{1}');
    await listener.subscribe('told{1}');
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { notify: '^told{1}' });
    expect(await client.release(name, 'a')).toEqual([]);
    await waitUntil(() => heard.length > 0, { what: 'the message' });
    expect(heard).toEqual([
      ['sharded', 'told{1}', expect.stringMatching(new RegExp(`^granted b \\d+ ${client.lock(name)}$`))],
    ]);
  });

  it("knows a process by its channel up to the hash tag: it gets its waiters' hand-offs in the reply", async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    for (const [id, notify] of [
      ['b', '^own{1}'],
      ['c', '!own'],
      ['d', '^own{2}'],
    ] as const) {
      await client.acquire(name, id, { notify });
    }
    for (const [from, to, caller] of [
      ['a', 'b', '!own'],
      ['b', 'c', '^own{2}'],
      ['c', 'd', '^own{3}'],
    ] as const) {
      expect(await client.release(name, from, caller)).toMatchObject([to, expect.anything()]);
    }
  });

  it('leaves a free lock when nobody who waits is there', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { notify: '=gone' });
    expect(await client.release(name, 'a')).toBe(1);
    expect(await redis.command('EXISTS', client.lock(name), client.keys(name)[2])).toBe(0);
  });

  it.each([
    ['publish', '~x', '+@all'],
    ['publish, nor ask who listens', '=x', '-pubsub'],
    ['publish to a sharded channel', '^x{1}', '-spublish'],
    ['publish to a sharded channel, nor ask who listens', '^x{1}', '-pubsub'],
  ])('hands off whole when the user may not %s', async (_, notify, rights) => {
    const name = fresh();
    await redis.command('ACL', 'SETUSER', 'mute', 'reset', 'on', 'nopass', '~*', '+@all', rights);
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { notify });
    await client.acquire(name, 'c', { notify });
    const { sendCommands } = await import('@locks/test-servers');
    const replies = await sendCommands(redis, [
      ['AUTH', 'mute', ''],
      ['EVAL', scripts.release.source, 3, ...client.keys(name), 'a', '=me'],
    ]);
    expect(replies.at(-1)).toEqual([]);
    expect(await redis.command('GET', client.lock(name))).toMatch(/^b\|\+\|/);
    expect(await redis.command('ZCOUNT', client.keys(name)[2], '0', '+inf')).toBe(1);
  });
});

describe('abandon', () => {
  it('ends a hold with a hand-off, a wait without a trace, and may be repeated', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    for (const id of ['b', 'c']) await client.acquire(name, id, { notify: '=me' });
    expect(await client.abandon(name, 'b')).toBe(0);
    expect(((await client.abandon(name, 'a')) as unknown[])[0]).toBe('c');
    expect(await client.abandon(name, 'a')).toBe(0);
    expect(await client.abandon(name, 'c')).toBe(1);
    expect(await redis.command('EXISTS', client.lock(name), client.keys(name)[2])).toBe(0);
  });

  it('removes the queue with its last waiter', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { notify: '=me' });
    await client.abandon(name, 'b');
    expect(await redis.command('EXISTS', client.keys(name)[2])).toBe(0);
  });
});

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

describe('force-release', () => {
  it('ends any hold, or only the expected one, and serves the next', async () => {
    const name = fresh();
    await client.acquire(name, 'a');
    await client.acquire(name, 'b', { notify: '~x' });
    expect(await client.run(scripts.forceRelease, client.keys(name), ['=me', 'z'])).toBe(0);
    const ended = (await client.run(scripts.forceRelease, client.keys(name), ['=me', 'a'])) as unknown[];
    expect(ended[0]).toMatch(/^a\|\+\|/);
    expect(await redis.command('GET', client.lock(name))).toMatch(/^b\|/);
    await redis.command('SET', client.lock(name), 'stranger');
    const foreign = await client.run(scripts.forceRelease, client.keys(name), ['=me', 'stranger']);
    expect(foreign).toEqual(['stranger', -1, expect.any(Number), []]);
    expect(await client.run(scripts.forceRelease, client.keys(name), ['=me'])).toBe(0);
  });
});

describe('a full memory', () => {
  it('refuses new locks, but renews, releases and hands off', async () => {
    await using full = await startRedis({ args: ['--maxmemory-policy', 'noeviction'] });
    const locks = new ScriptClient(full);
    await locks.acquire('x', 'a');
    await locks.acquire('x', 'b', { notify: '=me' });
    await locks.acquire('y', 'a');
    await full.command('CONFIG', 'SET', 'maxmemory', 1);
    await expect(locks.acquire('z', 'a')).rejects.toThrow(/OOM/);
    await expect(locks.acquire('x', 'c', { notify: '=me' })).rejects.toThrow(/OOM/);
    expect(await full.command('EXISTS', locks.lock('z'))).toBe(0);
    expect(await locks.renew(['x', 'a', 60_000])).toEqual([1]);
    expect(((await locks.release('x', 'a')) as unknown[])[0]).toBe('b');
    expect(await locks.abandon('x', 'b')).toBe(1);
    expect(await locks.release('y', 'a')).toBe(1);
    expect(await full.command('EXISTS', locks.lock('x'), locks.lock('y'))).toBe(0);
  });
});
