import { waitUntil } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { scripts } from '../../src/generated/scripts.ts';
import {
  client,
  exists,
  expectQueues,
  fresh,
  isGranted,
  number,
  redis,
  useServer,
  waits,
  word,
} from './lab.ts';

useServer();

describe('readers', () => {
  it('hold together, each with a token of its own, and leave nothing', async () => {
    const name = fresh();
    const a = Number(await client.take(name, 'a', '0:0'));
    const b = Number(await client.take(name, 'b', '0:0'));
    expect(b).toBeGreaterThan(a);
    expect(await client.mark(name)).toBe('*0|0');
    expect((await client.inspect(name)).holders).toEqual(['a', 'b']);
    expect(await client.releaseShare(name, 'a')).toBe('released');
    expect(await client.releaseShare(name, 'a')).toBe('not-held');
    expect(await client.releaseShare(name, 'b')).toBe('released');
    expect(await exists(name)).toBe(0);
  });

  it('exclude a writer and a stranger, as long as the longest of them lasts', async () => {
    const name = fresh();
    await client.take(name, 'long', '0:0', { ttlMs: 40_000 });
    await client.take(name, 'short', '0:0', { ttlMs: 60 });
    expect(Number(await redis.command('PTTL', client.lock(name)))).toBeGreaterThan(30_000);
    expect(await client.acquire(name, 'w')).toBe('contended');
    expect(await redis.command('SET', client.lock(name), 'theirs', 'NX', 'PX', 1000)).toBeNull();
    await client.releaseShare(name, 'long');
    // The mark stays, and our scripts read beyond it.
    await isGranted(name, 'w');
  });

  it("are excluded by a writer and by a stranger's lock, without a conflict", async () => {
    const name = fresh();
    await client.acquire(name, 'w');
    expect(await client.take(name, 'r', '0:0')).toBe('contended');
    await client.release(name, 'w');
    await redis.command('SET', client.lock(name), 'theirs', 'PX', 30_000);
    for (const mode of ['0:0', '4:1']) expect(await client.take(name, 'r', mode), mode).toBe('contended');
    expect(await redis.command('GET', client.lock(name))).toBe('theirs');
  });

  it('get the same token and the time left when they attempt again', async () => {
    const name = fresh();
    const token = Number(await client.take(name, 'a', '0:0'));
    const [status, again, left] = (await client.take(name, 'a', '0:0', { ttlMs: 90_000 })) as unknown[];
    expect([status, again]).toEqual(['granted', token]);
    expect(left).toBeLessThanOrEqual(30_000);
    expect(left).toBeGreaterThan(29_000);
  });

  it('wait behind a writer that waits, and are granted together when it releases', async () => {
    const name = fresh();
    await client.take(name, 'r1', '0:0');
    expect(waits(await client.acquire(name, 'w', { replyAddress: '~x' }))).toBe(true);
    expect(await client.take(name, 'r2', '0:0')).toBe('contended');
    for (const id of ['r2', 'r3'])
      expect(waits(await client.take(name, id, '0:0', { replyAddress: '=me' }))).toBe(true);
    await client.acquire(name, 'w2', { replyAddress: '~x' });
    expect(waits(await client.take(name, 'r4', '0:0', { replyAddress: '=me' }))).toBe(true);
    expect(await client.releaseShare(name, 'r1')).toEqual(['released']);
    expect(await redis.command('GET', client.lock(name))).toMatch(/^w\|\+\|/);
    const handed = (await client.release(name, 'w')) as unknown[];
    expect([handed[0], handed[1], handed[3], handed.length]).toEqual(['released', 'r2', 'r3', 5]);
    expect(Number(handed[4])).toBeGreaterThan(Number(handed[2]));
    expect(await client.inspect(name)).toMatchObject({ holders: ['r2', 'r3'], waiters: ['w2', 'r4'] });
    // Each share has its ttl; the mark is an eighth of it ahead.
    const left = Number(await redis.command('PTTL', client.lock(name)));
    expect(left).toBeGreaterThan(30_000);
    expect(left).toBeLessThanOrEqual(33_750);
  });

  it('end one by one, by their own time', async () => {
    const name = fresh();
    await client.take(name, 'short', '0:0', { ttlMs: 60 });
    await client.take(name, 'long', '0:0', { ttlMs: 30_000 });
    await waitUntil(async () => (await client.inspect(name)).holders.length === 1, {
      what: 'the end of one',
    });
    expect(await client.renewShares([name, 'short', 9_000], [name, 'long', 50_000])).toEqual([2, 1]);
    expect(await client.releaseShare(name, 'short')).toBe('not-held');
    expect((await client.inspect(name)).holders).toEqual(['long']);
    expect(Number(await redis.command('PTTL', client.lock(name)))).toBeGreaterThan(45_000);
  });

  it('may renew for a shorter time, and then exclude no longer than that', async () => {
    const name = fresh();
    await client.take(name, 'a', '0:0', { ttlMs: 60_000 });
    await client.renewShares([name, 'a', 500]);
    expect(await client.acquire(name, 'w')).toBe('contended');
    await isGranted(name, 'w');
  });

  it('that have ended are removed by the next attempt, though others hold all the time', async () => {
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
    await client.take(name, 'long', '0:0', { ttlMs: 3_600_000 });
    await client.take(name, 'short', '0:0', { ttlMs: 1_000 });
    await client.renewShares([name, 'short', 2_000]);
    expect(Number(await redis.command('PTTL', client.lock(name)))).toBeGreaterThan(3_590_000);
    expect(Number(await redis.command('PTTL', client.holders(name)))).toBeGreaterThan(3_590_000);
  });

  it('wait behind a writer also when the token key was lost', async () => {
    const name = fresh();
    await client.take(name, 'r', '0:0');
    await client.acquire(name, 'w', { replyAddress: '~x' });
    await redis.command('DEL', client.keys(name)[1]);
    expect(await client.take(name, 'r2', '0:0')).toBe('contended');
  });

  it('that are left of a lost mark exclude nobody, however the next are granted', async () => {
    const [asked, handed] = [fresh(), fresh()];
    for (const name of [asked, handed]) await client.take(name, 'old', '0:0');
    await client.acquire(handed, 'w', { replyAddress: '~x' });
    await client.take(handed, 'r', '0:0', { replyAddress: '~y' });
    for (const name of [asked, handed]) await redis.command('DEL', client.lock(name));
    await expectQueues(asked);
    await client.take(asked, 'new', '0:0');
    expect((await client.inspect(asked)).holders).toEqual(['new']);
    await client.abandon(handed, 'w', { replyAddress: '~x' });
    expect((await client.inspect(handed)).holders).toEqual(['r']);
    expect(Number(await redis.command('PTTL', client.holders(handed)))).toBeGreaterThan(100_000);
  });

  it('are lost with the mark, and their fields no longer count', async () => {
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
    expect(await client.releaseShare(name, 'new')).toBe('not-held');
    expect(await client.downgrade(name, 'w')).toEqual(['shared', expect.any(Number)]);
    expect((await client.inspect(name)).holders).toEqual(['w']);
  });
});

describe('permits', () => {
  it('are held up to the limit, by weight', async () => {
    const name = fresh();
    await client.take(name, 'a', '4:3');
    expect(await client.mark(name)).toBe('*4|3');
    expect(await client.take(name, 'b', '4:2')).toBe('contended');
    await client.take(name, 'c', '4:1');
    expect(await client.mark(name)).toBe('*4|4');
    expect(await client.releaseShare(name, 'a', 3)).toBe('released');
    expect(await client.mark(name)).toBe('*4|1');
  });

  it('free the weight of an ended one once, whichever script finds it', async () => {
    const name = fresh();
    await client.take(name, 'dead', '4:3', { ttlMs: 400 });
    await client.take(name, 'live', '4:1');
    await waitUntil(async () => (await client.inspect(name)).holders.length === 1, {
      what: 'the end of one',
    });
    expect(await client.mark(name)).toBe('*4|4');
    expect(await client.take(name, 'b', '4:4')).toBe('contended');
    expect(await client.mark(name)).toBe('*4|1');
    expect(Number(await client.take(name, 'c', '4:3'))).toBeGreaterThan(0);
    expect(await client.releaseShare(name, 'dead', 3)).toBe('not-held');
    expect(await client.mark(name)).toBe('*4|4');
  });

  it('are not overtaken by lighter ones', async () => {
    const name = fresh();
    await client.take(name, 'a', '4:3');
    await client.take(name, 'heavy', '4:4', { replyAddress: '!me' });
    expect(await client.take(name, 'light', '4:1')).toBe('contended');
    expect(waits(await client.take(name, 'light', '4:1', { replyAddress: '!me' }))).toBe(true);
    expect(((await client.releaseShare(name, 'a', 3)) as unknown[])[1]).toBe('heavy');
    expect((await client.inspect(name)).waiters).toEqual(['light']);
    // The waiter that held the others back is abandoned: they are served in the same step.
    await client.releaseShare(name, 'heavy', 4);
    expect((await client.inspect(name)).holders).toEqual(['light']);
    await client.take(name, 'x', '4:4', { replyAddress: '!me' });
    await client.take(name, 'y', '4:1', { replyAddress: '!me' });
    const reply = await client.run(scripts.abandon, client.keys(name), ['x', '=me', 'x|30000:4|!me|label']);
    expect((reply as unknown[])[1]).toBe('y');
  });

  it('that were passed over while readers took the name wait for the end of the readers', async () => {
    const name = fresh();
    const checked = () =>
      client.run(scripts.check, client.keys(name), ['5000', '~x', '', 1, 'w|30000:2|~x|label', 7, 4]);
    await client.take(name, 'reader', '0:0');
    expect(await checked()).toEqual([['checked', expect.any(Number), expect.any(Number)]]);
    expect((await client.inspect(name)).waiters).toEqual(['w']);
    expect(await client.take(name, 'other', '0:0')).toBe('contended');
    expect(await client.releaseShare(name, 'reader', 0, '=x')).toEqual(['released', 'w', expect.any(Number)]);
    expect(await client.mark(name)).toBe('*4|2');
  });

  it('of another limit, and beside other modes, are a conflict as long as anything lives', async () => {
    const name = fresh();
    await client.take(name, 'a', '4:1');
    expect(await client.take(name, 'b', '5:1')).toEqual(['conflict', 4]);
    expect(await client.take(name, 'b', '0:0', { replyAddress: '~x' })).toEqual(['conflict', 4]);
    expect(await client.acquire(name, 'b')).toEqual(['conflict', 4]);
    expect((await client.inspect(name)).waiters).toEqual([]);
    expect(word(await client.take(name, 'a', '5:1'))).toBe('granted');
    await client.releaseShare(name, 'a', 1);
    expect(Number(await client.take(name, 'b', '5:1'))).toBeGreaterThan(0);
    const [writer, reader, stranger] = [fresh(), fresh(), fresh()];
    await client.acquire(writer, 'w');
    expect(await client.take(writer, 'p', '4:1')).toEqual(['conflict', -1]);
    await client.take(reader, 'r', '0:0');
    expect(await client.take(reader, 'p', '4:1')).toEqual(['conflict', 0]);
    await redis.command('SET', client.lock(stranger), 'theirs', 'PX', 30_000);
    await client.take(stranger, 'p', '4:1', { replyAddress: '~x' });
    expect(await client.take(stranger, 'q', '5:1')).toEqual(['conflict', 4]);
    expect(await client.acquire(stranger, 'q')).toEqual(['conflict', 4]);
    expect(await redis.command('GET', client.lock(stranger))).toBe('theirs');
    await redis.command('DEL', client.lock(stranger));
    // The waiter p is served before the attempt of q, since it waited first.
    expect(await client.acquire(stranger, 'q')).toEqual(['conflict', 4]);
    expect((await client.inspect(stranger)).holders).toEqual(['p']);
  });

  it('are resized with the waiters, and those that fit now are served', async () => {
    const name = fresh();
    expect(await client.resize(name, 9)).toBe('set');
    expect(await exists(name)).toBe(0);
    await client.take(name, 'a', '2:2');
    const position = number(await client.take(name, 'b', '2:2', { replyAddress: '=me' }));
    await client.take(name, 'c', '2:1', { replyAddress: '=me' });
    const [status, id] = (await client.resize(name, 4)) as unknown[];
    expect([status, id]).toEqual(['set', 'b']);
    expect(await client.mark(name)).toBe('*4|4');
    expect(await client.take(name, 'd', '2:1')).toEqual(['conflict', 4]);
    // The process of the waiter still sends 2.
    await client.run(scripts.check, client.keys(name), [
      '5000',
      '~x',
      '',
      1,
      'c|30000:1|~x|label',
      position + 1,
      2,
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
      expect(await client.resize(other, 3)).toEqual(['conflict', mode === '0:' ? -1 : 0]);
    }
  });
});
