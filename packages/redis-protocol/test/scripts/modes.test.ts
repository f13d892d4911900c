import { describe, expect, it } from 'vitest';
import { client, exists, fresh, number, redis, useServer, word } from './lab.ts';

useServer();

describe('downgrade', () => {
  it('keeps token and end, and grants the readers at the head of the queue', async () => {
    const name = fresh();
    await client.acquire(name, 'w', { ttlMs: 20_000 });
    await client.take(name, 'r', '0:0', { replyAddress: '=me' });
    await client.acquire(name, 'w2', { replyAddress: '=me' });
    const [status, left, id, , ...rest] = (await client.downgrade(name, 'w')) as unknown[];
    expect(Number(left)).toBeGreaterThan(19_000);
    expect([status, id, rest]).toEqual(['shared', 'r', []]);
    expect((await client.inspect(name)).holders.sort()).toEqual(['r', 'w']);
    expect(await client.downgrade(name, 'w')).toEqual(['shared', expect.any(Number)]);
    expect(await client.renewShares([name, 'w', 20_000])).toEqual([1]);
    expect(await client.releaseShare(name, 'r')).toBe('released');
    expect(((await client.releaseShare(name, 'w')) as unknown[])[1]).toBe('w2');
    expect(await client.downgrade(name, 'w')).toBe('another-holds');
    expect(await client.downgrade(fresh(), 'w')).toBe('nobody-holds');
  });

  it('is reported only as long as it lasts', async () => {
    const name = fresh();
    await client.acquire(name, 'w');
    await client.downgrade(name, 'w');
    expect(await client.downgrade(name, 'w')).toEqual(['shared', expect.any(Number)]);
    await client.expire(name, 'w');
    expect(await client.downgrade(name, 'w')).toBe('another-holds');
  });

  it('that may not have happened leaves a hold that is renewed and released either way', async () => {
    const name = fresh();
    await client.acquire(name, 'w');
    expect(await client.renewShares([name, 'w', 20_000])).toEqual([1]);
    expect(await client.releaseShare(name, 'w')).toBe('released');
    expect(await exists(name)).toBe(0);
  });
});

describe('steal', () => {
  it.each([
    { mode: '0:', helds: ['0:', '0:0'] },
    { mode: '0:0', helds: ['0:', '0:0'] },
    { mode: '4:2', helds: ['0:0', '4:2'] },
  ])('ends every hold and goes ahead of the queue ($mode)', async ({ mode, helds }) => {
    for (const held of helds) {
      const name = fresh();
      const token = Number(await client.take(name, 'a', held));
      await client.take(name, 'b', held, { replyAddress: '~x' });
      await client.take(name, 'c', held, { replyAddress: '~x' });
      const reply = await client.take(name, 'stealer', mode, { steal: true });
      expect(number(reply)).toBeGreaterThan(token);
      const again = (await client.take(name, 'stealer', mode, { steal: true })) as unknown[];
      expect(again.slice(0, 2)).toEqual(['granted', number(reply)]);
      expect(await client.renewShares([name, 'a', 9000])).toEqual([2]);
      const { waiters, value } = await client.inspect(name);
      expect(waiters).toEqual(held === '0:' ? ['b', 'c'] : []);
      if (mode === '0:') expect(value).toMatch(waiters.length > 0 ? /^stealer\|\+\|/ : /^stealer\|-\|/);
    }
  });

  it.each([
    { waits: '0:', mode: '4:2', with: -1 },
    { waits: '0:0', mode: '4:2', with: -1 },
    { waits: '4:2', mode: '0:', with: 4 },
    { waits: '4:2', mode: '0:0', with: 4 },
    { waits: '4:2', mode: '5:2', with: 4 },
  ])('contradicts nobody who waits ($waits, $mode)', async ({ waits, mode, with: limit }) => {
    const name = fresh();
    await client.take(name, 'holder', waits === '4:2' ? '4:4' : '0:');
    await client.take(name, 'waiter', waits, { replyAddress: '~x' });
    expect(await client.take(name, 'stealer', mode, { steal: true })).toEqual(['conflict', limit]);
    const { holders, value, waiters } = await client.inspect(name);
    expect(`${String(value)} ${holders.join()}`).toContain('holder');
    expect(waiters).toEqual(['waiter']);
  });

  it("takes a stranger's lock", async () => {
    const name = fresh();
    await redis.command('SET', client.lock(name), 'theirs', 'PX', 30_000);
    expect(Number(await client.take(name, 'stealer', '0:0', { steal: true }))).toBeGreaterThan(0);
  });
});

describe('thousands of waiters', () => {
  const size = 5_000;
  /** Adds waiters of the calling process behind one that waits already. */
  const addWaiters = (name: string, mode: string) =>
    redis.command(
      'EVAL',
      "for i = 1, ARGV[2] do redis.call('ZADD', KEYS[1], 9e15 + i, 'id' .. i .. ARGV[1]) end",
      1,
      client.keys(name)[2],
      `|30000:${mode}|=me|label`,
      size - 1,
    );

  it('are granted all at once by a downgrade, a resize and a forced release', async () => {
    const [written, limited, forced] = [fresh(), fresh(), fresh()];
    for (const name of [written, forced]) {
      await client.acquire(name, 'w');
      await client.take(name, 'r', '0:0', { replyAddress: '=me' });
      await addWaiters(name, '0');
    }
    await client.take(limited, 'p', '1:1');
    await client.take(limited, 'r', '1:1', { replyAddress: '=me' });
    await addWaiters(limited, '1');
    const replies = [
      [2, await client.downgrade(written, 'w')],
      [1, await client.resize(limited, 2 * size)],
      [5, await client.forceRelease(forced)],
    ] as [number, unknown[]][];
    for (const [before, reply] of replies) {
      expect(reply).toHaveLength(before + 2 * size);
      expect([reply[before], reply[before + 2], reply.at(-2)]).toEqual(['r', 'id1', `id${size - 1}`]);
    }
    expect(replies[2]?.[1][1]).toMatch(/^w\|\+\|/);
    for (const name of [written, limited, forced])
      expect(await redis.command('HLEN', client.holders(name))).toBe(size + (name === forced ? 0 : 1));
  });
});

describe('many', () => {
  it('are taken all or none, and once', async () => {
    const [a, b, c] = [fresh(), fresh(), fresh()];
    const reply = (await client.many([a, 'x', '0:'], [b, 'y', '0:0'], [c, 'z', '4:2'])) as unknown[];
    expect(reply).toHaveLength(7);
    expect(await redis.command('GET', client.lock(a))).toMatch(/^x\|-\|/);
    expect(await client.mark(c)).toBe('*4|2');
    const again = (await client.many([a, 'x', '0:'], [b, 'y', '0:0'], [c, 'z', '4:2'])) as unknown[];
    expect([0, 1, 3, 5].map((at) => again[at])).toEqual(['granted', reply[1], reply[3], reply[5]]);
    const d = fresh();
    expect(await client.many([d, 'q', '0:'], [b, 'r', '0:'])).toBe('contended');
    expect(await exists(d)).toBe(0);
    expect(word(await client.many([d, 'q', '0:'], [b, 'r', '0:0']))).toBe('granted');
  });

  it('never overtake waiters', async () => {
    const [a, b] = [fresh(), fresh()];
    await client.take(a, 'x', '4:2');
    await client.take(a, 'heavy', '4:4', { replyAddress: '~x' });
    expect(await client.many([b, 'q', '0:'], [a, 'r', '4:1'])).toBe('contended');
    expect(await exists(b)).toBe(0);
  });
});
