import { type RedisServer, startRedis, waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { scripts } from '../src/generated/scripts.ts';
import { ScriptClient, sharesOf } from './script-client.ts';

let redis: RedisServer;
let client: ScriptClient;
let count = 0;
const fresh = () => `resource-${++count}`;
const first = (reply: unknown) => Number(Array.isArray(reply) ? reply[0] : reply);
const waits = (reply: unknown) => first(reply) < 0;
const exists = (name: string) => redis.command('EXISTS', ...client.allKeys(name).filter((_, at) => at !== 1));
/** Asks until it is let in. */
const enters = (name: string, id: string, mode = '0:') =>
  waitUntil(async () => first(await client.take(name, id, mode)) > 0, {
    what: `${id} to be let in`,
    timeoutMs: 2_000,
  });

beforeAll(async () => {
  redis = await startRedis();
  client = new ScriptClient(redis);
});
afterAll(() => redis.stop());

describe('readers', () => {
  it('hold together, each with a token of its own, and leave nothing', async () => {
    const name = fresh();
    const a = Number(await client.take(name, 'a', '0:0'));
    const b = Number(await client.take(name, 'b', '0:0'));
    expect(b).toBeGreaterThan(a);
    expect(await client.mark(name)).toBe('*0|0');
    expect((await client.inspect(name)).holders).toEqual(['a', 'b']);
    expect(await client.releaseShare(name, 'a')).toBe(1);
    expect(await client.releaseShare(name, 'a')).toBe(0);
    expect(await client.releaseShare(name, 'b')).toBe(1);
    expect(await exists(name)).toBe(0);
  });

  it('exclude a writer and a stranger, as long as the longest of them lasts', async () => {
    const name = fresh();
    await client.take(name, 'long', '0:0', { ttlMs: 40_000 });
    await client.take(name, 'short', '0:0', { ttlMs: 60 });
    expect(Number(await redis.command('PTTL', client.lock(name)))).toBeGreaterThan(30_000);
    expect(await client.acquire(name, 'w')).toBe(0);
    expect(await redis.command('SET', client.lock(name), 'theirs', 'NX', 'PX', 1000)).toBeNull();
    await client.releaseShare(name, 'long');
    // The mark stays; whoever knows it looks further.
    await enters(name, 'w');
  });

  it("are excluded by a writer and by a stranger's lock, without a conflict", async () => {
    const name = fresh();
    await client.acquire(name, 'w');
    expect(await client.take(name, 'r', '0:0')).toBe(0);
    await client.release(name, 'w');
    await redis.command('SET', client.lock(name), 'theirs', 'PX', 30_000);
    for (const mode of ['0:0', '4:1']) expect(await client.take(name, 'r', mode), mode).toBe(0);
    expect(await redis.command('GET', client.lock(name))).toBe('theirs');
  });

  it('get the same token and what is left when they ask again', async () => {
    const name = fresh();
    const token = Number(await client.take(name, 'a', '0:0'));
    const [again, left] = (await client.take(name, 'a', '0:0', { ttlMs: 90_000 })) as number[];
    expect(again).toBe(token);
    expect(left).toBeLessThanOrEqual(30_000);
    expect(left).toBeGreaterThan(29_000);
  });

  it('wait behind a writer that waits, and are let in together when it leaves', async () => {
    const name = fresh();
    await client.take(name, 'r1', '0:0');
    expect(waits(await client.acquire(name, 'w', { notify: '!x' }))).toBe(true);
    expect(await client.take(name, 'r2', '0:0')).toBe(0);
    for (const id of ['r2', 'r3'])
      expect(waits(await client.take(name, id, '0:0', { notify: '=me' }))).toBe(true);
    await client.acquire(name, 'w2', { notify: '!x' });
    expect(waits(await client.take(name, 'r4', '0:0', { notify: '=me' }))).toBe(true);
    expect(await client.releaseShare(name, 'r1')).toEqual([]);
    expect(await redis.command('GET', client.lock(name))).toMatch(/^w\|\+\|/);
    const handed = (await client.release(name, 'w')) as unknown[];
    expect([handed[0], handed[2], handed.length]).toEqual(['r2', 'r3', 4]);
    expect(Number(handed[3])).toBeGreaterThan(Number(handed[1]));
    expect(await client.inspect(name)).toMatchObject({ holders: ['r2', 'r3'], waiters: ['w2', 'r4'] });
    // For the claim time, each by itself; the mark is ahead by an eighth.
    expect(Number(await redis.command('PTTL', client.lock(name)))).toBeLessThanOrEqual(2250);
  });

  it('end one by one, by their own time', async () => {
    const name = fresh();
    await client.take(name, 'short', '0:0', { ttlMs: 60 });
    await client.take(name, 'long', '0:0', { ttlMs: 30_000 });
    await waitUntil(async () => (await client.inspect(name)).holders.length === 1, {
      what: 'the end of one',
    });
    expect(await client.renewShares([name, 'short', 9_000], [name, 'long', 50_000])).toEqual([
      2,
      expect.any(Number),
    ]);
    expect(await client.releaseShare(name, 'short')).toBe(0);
    expect((await client.inspect(name)).holders).toEqual(['long']);
    expect(Number(await redis.command('PTTL', client.lock(name)))).toBeGreaterThan(45_000);
  });

  it('may renew for a shorter time, and then exclude no longer than that', async () => {
    const name = fresh();
    await client.take(name, 'a', '0:0', { ttlMs: 60_000 });
    await client.renewShares([name, 'a', 60]);
    expect(await client.acquire(name, 'w')).toBe(0);
    await enters(name, 'w');
  });

  it('that have ended are taken out by the next who comes, though others hold all the time', async () => {
    const name = fresh();
    await client.take(name, 'dead', '0:0', { ttlMs: 40 });
    await client.take(name, 'live', '0:0');
    await waitUntil(async () => (await client.inspect(name)).holders.length === 1, {
      what: 'the end of one',
    });
    await client.take(name, 'next', '0:0');
    expect(await redis.command('HKEYS', client.holders(name))).toEqual(['live', 'next']);
  });

  it('keep the mark as long as the longest of them, also when a shorter one is renewed', async () => {
    const name = fresh();
    await client.take(name, 'long', '0:0', { ttlMs: 60_000 });
    await client.take(name, 'short', '0:0', { ttlMs: 1_000 });
    await client.renewShares([name, 'short', 2_000]);
    expect(Number(await redis.command('PTTL', client.lock(name)))).toBeGreaterThan(50_000);
  });

  it('wait behind a writer also when the token key was lost', async () => {
    const name = fresh();
    await client.take(name, 'r', '0:0');
    await client.acquire(name, 'w', { notify: '!x' });
    await redis.command('DEL', client.keys(name)[1]);
    expect(await client.take(name, 'r2', '0:0')).toBe(0);
  });

  it('are lost with the mark, and what is left of them counts for nothing', async () => {
    const name = fresh();
    await client.take(name, 'old', '0:0');
    await redis.command('DEL', client.lock(name));
    expect(await client.renewShares([name, 'old', 9_000])).toEqual([0]);
    await client.take(name, 'new', '0:0');
    expect(await client.renewShares([name, 'old', 9_000])).toEqual([2]);
    expect((await client.inspect(name)).holders).toEqual(['new']);
    await redis.command('DEL', client.lock(name));
    await client.acquire(name, 'w');
    expect(await client.renewShares([name, 'new', 9_000])).toEqual([2]);
    expect(await client.releaseShare(name, 'new')).toBe(0);
    expect(await client.downgrade(name, 'w')).toEqual([expect.any(Number)]);
    expect((await client.inspect(name)).holders).toEqual(['w']);
  });
});

describe('permits', () => {
  it('are held up to the limit, by weight', async () => {
    const name = fresh();
    await client.take(name, 'a', '4:3');
    expect(await client.mark(name)).toBe('*4|3');
    expect(await client.take(name, 'b', '4:2')).toBe(0);
    await client.take(name, 'c', '4:1');
    expect(await client.mark(name)).toBe('*4|4');
    expect(await client.releaseShare(name, 'a', 3)).toBe(1);
    expect(await client.mark(name)).toBe('*4|1');
  });

  it('give the weight of an ended one back once, whoever looks', async () => {
    const name = fresh();
    await client.take(name, 'dead', '4:3', { ttlMs: 400 });
    await client.take(name, 'live', '4:1');
    await waitUntil(async () => (await client.inspect(name)).holders.length === 1, {
      what: 'the end of one',
    });
    expect(await client.mark(name)).toBe('*4|4');
    expect(await client.take(name, 'b', '4:4')).toBe(0);
    expect(await client.mark(name)).toBe('*4|1');
    expect(Number(await client.take(name, 'c', '4:3'))).toBeGreaterThan(0);
    expect(await client.releaseShare(name, 'dead', 3)).toBe(0);
    expect(await client.mark(name)).toBe('*4|4');
  });

  it('are not overtaken by lighter ones', async () => {
    const name = fresh();
    await client.take(name, 'a', '4:3');
    await client.take(name, 'heavy', '4:4', { notify: '!me' });
    expect(await client.take(name, 'light', '4:1')).toBe(0);
    expect(waits(await client.take(name, 'light', '4:1', { notify: '!me' }))).toBe(true);
    expect(((await client.releaseShare(name, 'a', 3)) as unknown[])[0]).toBe('heavy');
    expect((await client.inspect(name)).waiters).toEqual(['light']);
    // One that held the others back goes away: they are served in the same step.
    await client.releaseShare(name, 'heavy', 4);
    expect((await client.inspect(name)).holders).toEqual(['light']);
    await client.take(name, 'x', '4:4', { notify: '!me' });
    await client.take(name, 'y', '4:1', { notify: '!me' });
    const reply = await client.run(scripts.abandon, client.keys(name), ['x', '=me', 'x|2000:4|!me|label']);
    expect((reply as unknown[])[0]).toBe('y');
  });

  it('of another limit, and beside other modes, are a conflict as long as anything lives', async () => {
    const name = fresh();
    await client.take(name, 'a', '4:1');
    expect(await client.take(name, 'b', '5:1')).toEqual([0, 4]);
    expect(await client.take(name, 'b', '0:0', { notify: '!x' })).toEqual([0, 4]);
    expect(await client.acquire(name, 'b')).toEqual([0, 4]);
    expect((await client.inspect(name)).waiters).toEqual([]);
    expect(first(await client.take(name, 'a', '5:1'))).toBeGreaterThan(0);
    await client.releaseShare(name, 'a', 1);
    expect(Number(await client.take(name, 'b', '5:1'))).toBeGreaterThan(0);
    const [writer, reader, stranger] = [fresh(), fresh(), fresh()];
    await client.acquire(writer, 'w');
    expect(await client.take(writer, 'p', '4:1')).toEqual([0, -1]);
    await client.take(reader, 'r', '0:0');
    expect(await client.take(reader, 'p', '4:1')).toEqual([0, 0]);
    await redis.command('SET', client.lock(stranger), 'theirs', 'PX', 30_000);
    await client.take(stranger, 'p', '4:1', { notify: '!x' });
    expect(await client.take(stranger, 'q', '5:1')).toEqual([0, 4]);
    expect(await client.acquire(stranger, 'q')).toEqual([0, 4]);
    expect(await redis.command('GET', client.lock(stranger))).toBe('theirs');
    await redis.command('DEL', client.lock(stranger));
    // Served before it asks, since it waited first.
    expect(await client.acquire(stranger, 'q')).toEqual([0, 4]);
    expect((await client.inspect(stranger)).holders).toEqual(['p']);
  });

  it('are resized with those who wait, and whoever fits now is served', async () => {
    const name = fresh();
    expect(await client.resize(name, 9)).toEqual([1]);
    expect(await exists(name)).toBe(0);
    await client.take(name, 'a', '2:2');
    const place = -first(await client.take(name, 'b', '2:2', { notify: '=me' }));
    await client.take(name, 'c', '2:1', { notify: '=me' });
    const [status, id] = (await client.resize(name, 4)) as unknown[];
    expect([status, id]).toEqual([1, 'b']);
    expect(await client.mark(name)).toBe('*4|4');
    expect(await client.take(name, 'd', '2:1')).toEqual([0, 4]);
    // Its process still says 2.
    await client.run(scripts.check, client.keys(name), [
      '5000||!x',
      1,
      'c|2000:1|!x|label',
      `${place + 1}:2`,
    ]);
    await client.resize(name, 1);
    expect((await client.inspect(name)).limit).toBe('-1');
    await client.releaseShare(name, 'a', 2);
    expect((await client.inspect(name)).holders).toEqual(['b']);
    await client.releaseShare(name, 'b', 2);
    expect(await client.mark(name)).toBe('*1|1');
    for (const mode of ['0:0', '0:']) {
      const other = fresh();
      await client.take(other, 'x', mode);
      expect(await client.resize(other, 3)).toEqual([0, mode === '0:' ? -1 : 0]);
    }
  });
});

describe('downgrade', () => {
  it('keeps token and end, and lets the readers at the head in', async () => {
    const name = fresh();
    const token = await client.acquire(name, 'w', { ttlMs: 20_000 });
    await client.take(name, 'r', '0:0', { notify: '=me' });
    await client.acquire(name, 'w2', { notify: '=me' });
    const [left, id, , ...rest] = (await client.downgrade(name, 'w')) as unknown[];
    expect(Number(left)).toBeGreaterThan(19_000);
    expect([id, rest]).toEqual(['r', []]);
    expect((await client.inspect(name)).holders.sort()).toEqual(['r', 'w']);
    expect(await client.downgrade(name, 'w')).toEqual([expect.any(Number)]);
    expect(await client.renewShares([name, 'w', 20_000])).toEqual([Number(token)]);
    expect(await client.releaseShare(name, 'r')).toBe(1);
    expect(((await client.releaseShare(name, 'w')) as unknown[])[0]).toBe('w2');
    expect(await client.downgrade(name, 'w')).toBe(2);
    expect(await client.downgrade(fresh(), 'w')).toBe(0);
  });

  it('that may not have happened leaves a hold that is renewed and released either way', async () => {
    const name = fresh();
    const token = await client.acquire(name, 'w');
    expect(await client.renewShares([name, 'w', 20_000])).toEqual([Number(token)]);
    expect(await client.releaseShare(name, 'w')).toBe(1);
    expect(await exists(name)).toBe(0);
  });
});

describe('steal', () => {
  it.each(['0:', '0:0', '4:2'])('ends every hold and goes ahead of the queue (%s)', async (mode) => {
    for (const held of ['0:', '0:0', '4:2']) {
      const name = fresh();
      const token = Number(await client.take(name, 'a', held));
      await client.take(name, 'b', held, { notify: '!x' });
      await client.take(name, 'c', held, { notify: '!x' });
      const reply = await client.take(name, 'thief', mode, { steal: true });
      expect(first(reply)).toBeGreaterThan(token);
      const again = (await client.take(name, 'thief', mode, { steal: true })) as unknown[];
      expect(again[0]).toBe(first(reply));
      expect(await client.renewShares([name, 'a', 9000])).toEqual([2]);
      const { waiters, value } = await client.inspect(name);
      expect(waiters).toEqual(held === '0:' ? ['b', 'c'] : held === '0:0' || mode === '4:2' ? [] : ['c']);
      if (mode === '0:') expect(value).toMatch(waiters.length > 0 ? /^thief\|\+\|/ : /^thief\|-\|/);
    }
  });

  it("takes a stranger's lock", async () => {
    const name = fresh();
    await redis.command('SET', client.lock(name), 'theirs', 'PX', 30_000);
    expect(Number(await client.take(name, 'thief', '0:0', { steal: true }))).toBeGreaterThan(0);
  });
});

describe('many', () => {
  it('are taken all or none, and once', async () => {
    const [a, b, c] = [fresh(), fresh(), fresh()];
    const reply = (await client.many([a, 'x', '0:'], [b, 'y', '0:0'], [c, 'z', '4:2'])) as number[];
    expect(reply).toHaveLength(6);
    expect(await redis.command('GET', client.lock(a))).toMatch(/^x\|-\|/);
    expect(await client.mark(c)).toBe('*4|2');
    const again = (await client.many([a, 'x', '0:'], [b, 'y', '0:0'], [c, 'z', '4:2'])) as number[];
    expect([again[0], again[2], again[4]]).toEqual([reply[0], reply[2], reply[4]]);
    const d = fresh();
    expect(await client.many([d, 'q', '0:'], [b, 'r', '0:'])).toBe(0);
    expect(await exists(d)).toBe(0);
    expect(first(await client.many([d, 'q', '0:'], [b, 'r', '0:0']))).toBeGreaterThan(0);
  });

  it('never overtake those who wait', async () => {
    const [a, b] = [fresh(), fresh()];
    await client.take(a, 'x', '4:2');
    await client.take(a, 'heavy', '4:4', { notify: '!x' });
    expect(await client.many([b, 'q', '0:'], [a, 'r', '4:1'])).toBe(0);
    expect(await exists(b)).toBe(0);
  });
});

describe('operating', () => {
  it('force-release ends all shares, or one, and serves the next', async () => {
    const name = fresh();
    const tokens = [];
    for (const id of ['a', 'b']) tokens.push(String(await client.take(name, id, '4:2')));
    await client.take(name, 'c', '4:2', { notify: '=me' });
    expect(await client.forceRelease(name, 'nobody')).toBe(0);
    const one = (await client.forceRelease(name, 'a')) as unknown[];
    expect(sharesOf(one[3] as string[])).toMatchObject([
      { id: 'a', weight: 2, label: 'label', token: BigInt(tokens[0] as string) },
    ]);
    expect(one[4]).toBe('c');
    const all = (await client.forceRelease(name)) as unknown[][];
    expect(sharesOf(all[3] as string[]).map(({ id }) => id)).toEqual(['b', 'c']);
    expect(await exists(name)).toBe(0);
  });

  it('abandon ends one share, whatever is known of it', async () => {
    const name = fresh();
    for (const id of ['a', 'ab', 'b']) await client.take(name, id, '4:1');
    expect(await client.abandon(name, 'a')).toBe(1);
    expect(await client.abandon(name, 'a')).toBe(0);
    expect(await client.mark(name)).toBe('*4|2');
    expect((await client.inspect(name)).holders).toEqual(['ab', 'b']);
  });

  it('a check tells shares that were granted, and serves those who fit', async () => {
    const name = fresh();
    const token = Number(await client.take(name, 'a', '4:1', { ttlMs: 9_000 }));
    await client.take(name, 'b', '4:3', { ttlMs: 500 });
    const places = [];
    for (const id of ['c', 'd']) places.push(-first(await client.take(name, id, '4:2', { notify: '!x' })));
    await waitUntil(async () => (await client.inspect(name)).holders.length === 1, { what: 'the end of b' });
    const [reply] = (await client.run(scripts.check, client.keys(name), [
      '5000||!x',
      3,
      ...['a|2000:1|!x|label', '1:4', 'c|2000:2|!x|label', `${places[0]}:4`],
      ...['d|2000:2|!x|label', `${places[1]}:4`],
    ])) as unknown[][];
    expect(reply?.slice(1, 3)).toEqual(['a', token]);
    expect(reply?.[3]).toBeLessThanOrEqual(9_000);
    expect([reply?.[4], reply?.[6], reply?.length]).toEqual(['c', 2000, 7]);
    expect(await client.mark(name)).toBe('*4|3');
  });

  it('a waiter that holds others back is passed over when nobody listens for it', async () => {
    const name = fresh();
    await client.take(name, 'r', '0:0');
    await client.acquire(name, 'w', { notify: '=gone' });
    await client.take(name, 'r2', '0:0', { notify: '=gone-too' });
    const place = -first(await client.take(name, 'r3', '0:0', { notify: '!me' }));
    const [reply] = (await client.run(scripts.check, client.keys(name), [
      '5000||!me',
      ...[1, 'r3|2000:0|!me|label', place],
    ])) as unknown[][];
    expect(reply?.[1]).toBe('r3');
    const { holders, waiters } = await client.inspect(name);
    expect([holders.sort(), waiters]).toEqual([['r', 'r3'], []]);
  });

  it('a share for which nobody listens is taken back whole', async () => {
    const [permits, readers] = [fresh(), fresh()];
    await client.take(permits, 'a', '4:4');
    await client.take(permits, 'gone', '4:3', { notify: '=gone' });
    await client.take(permits, 'b', '4:2', { notify: '!me' });
    expect(((await client.releaseShare(permits, 'a', 4)) as unknown[])[0]).toBe('b');
    expect(await client.mark(permits)).toBe('*4|2');
    await client.acquire(readers, 'w');
    await client.take(readers, 'gone', '0:0', { notify: '=gone' });
    await client.acquire(readers, 'w2', { notify: '!me' });
    expect(((await client.release(readers, 'w')) as unknown[])[0]).toBe('w2');
  });

  it('another type at a side key is an error, before anything is written, and stays', async () => {
    for (const side of [2, 3]) {
      const name = fresh();
      const key = client.allKeys(name)[side] as string;
      await redis.command('RPUSH', key, 'theirs');
      // Queues may exist in its slot.
      await redis.command('SET', client.keys(name)[1], `1;${Date.now() + 60_000}`);
      for (const notify of [undefined, '!x']) {
        const options = notify === undefined ? {} : { notify };
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
      ['5000||!x', 1, 'b|2000:0|!x|', 1, 1, 'c|2000:0|!x|', 2],
    )) as unknown[];
    expect(replies[0]).toMatch(/WRONGTYPE/);
    expect((replies[1] as unknown[])[1]).toBe('c');
  });

  it('a full memory refuses new shares, but renews, releases, downgrades and hands over', async () => {
    await using full = await startRedis({ args: ['--maxmemory-policy', 'noeviction'] });
    const locks = new ScriptClient(full);
    await locks.take('x', 'a', '2:1');
    await locks.take('x', 'b', '2:1');
    await locks.take('x', 'c', '2:1', { notify: '=me' });
    await locks.acquire('y', 'w');
    await locks.take('y', 'r', '0:0', { notify: '=me' });
    await full.command('CONFIG', 'SET', 'maxmemory', 1);
    await expect(locks.take('z', 'a', '0:0')).rejects.toThrow(/OOM/);
    expect(await locks.renewShares(['x', 'a', 60_000])).toEqual([expect.any(Number)]);
    expect(((await locks.releaseShare('x', 'a', 1)) as unknown[])[0]).toBe('c');
    expect(((await locks.downgrade('y', 'w')) as unknown[])[1]).toBe('r');
    expect(await locks.releaseShare('y', 'w')).toBe(1);
    expect(await locks.abandon('x', 'b')).toBe(1);
    expect(await full.command('EXISTS', locks.lock('z'))).toBe(0);
  });
});

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
        expect(await client.releaseShare(name, gone, weight)).toBe(1);
      }
      expect(await redis.command('EXISTS', client.lock(name), client.holders(name))).toBe(0);
    },
  );

  it('is counted anew once the first of them may have ended, and then left alone', async () => {
    const name = fresh();
    await client.take(name, 'dead', '9:4', { ttlMs: 40 });
    await client.take(name, 'live', '9:4', { ttlMs: 30_000 });
    const before = String(await redis.command('GET', client.lock(name)));
    await enters(name, 'next', '9:5');
    const after = String(await redis.command('GET', client.lock(name)));
    expect(await client.mark(name)).toBe('*9|9');
    expect(Number(after.split('|')[3])).toBeGreaterThan(Number(before.split('|')[3]) + 20_000);
    await client.renewShares([name, 'live', 30_000]);
    expect(await redis.command('GET', client.lock(name))).toBe(after);
  });
});

describe('a slot on the move', () => {
  it('renews a share one key at a time, and ends it so that the next who looks gives its weight back', async () => {
    const name = fresh();
    const holders = client.holders(name);
    await client.take(name, 'a', '5:3', { ttlMs: 5_000 });
    await client.take(name, 'b', '5:1');
    expect(await client.run(scripts.renewPart, [client.lock(name)], [60_000])).toBe(1);
    expect(await client.run(scripts.renewPart, [holders], [60_000, 'a'])).toBe(1);
    // Whoever comes after it must know how long it lasts.
    await client.take(name, 'brief', '5:1', { ttlMs: 50 });
    await client.releaseShare(name, 'brief', 1);
    expect(await client.run(scripts.renewPart, [holders], [60_000, 'x'])).toBe(2);
    expect(Number(await redis.command('PTTL', client.lock(name)))).toBeGreaterThan(50_000);
    expect(Number(await redis.command('PTTL', holders))).toBeGreaterThan(50_000);
    expect(await redis.command('HDEL', holders, 'a')).toBe(1);
    expect(await client.run(scripts.renewPart, [holders], [60_000, 'a'])).toBe(2);
    expect(await client.take(name, 'early', '5:3')).toBe(0);
    expect(await client.run(scripts.releaseKey, [client.lock(name)], ['a'])).toBe(0);
    expect(Number(await client.take(name, 'c', '5:3'))).toBeGreaterThan(0);
    expect(await client.releaseShare(name, 'a', 3)).toBe(0);
    await redis.command('SET', client.lock(name), 'theirs');
    expect(await client.run(scripts.renewPart, [client.lock(name)], [60_000])).toBe(2);
    await redis.command('DEL', client.lock(name));
    expect(await client.run(scripts.renewPart, [client.lock(name)], [60_000])).toBe(0);
  });
});
