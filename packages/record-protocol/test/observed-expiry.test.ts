import { createLocks } from '@locks/core';
import { describe, expect, it, vi } from 'vitest';
import { call, isContended, open, request, sleep, take, until } from './fixture.ts';
import { MemoryStore, Records } from './memory-records.ts';

describe('a hold in a store by whose time no hold ends', () => {
  it('ends for who has seen it unchanged for its ttl, and not sooner, whatever its age', async () => {
    const records = new Records();
    const holder = open(new MemoryStore(records));
    const observer = open(new MemoryStore(records));
    await take(holder, request('a', { ttlMs: 200 }));
    await sleep(300);
    // The hold is over, and the observer cannot know it.
    const seenAt = performance.now();
    expect(await isContended(observer, 'a')).toBe(true);
    await until(async () => !(await isContended(observer, 'a')));
    expect(performance.now() - seenAt).toBeGreaterThanOrEqual(200);
  });

  it('begins anew with each renewal', async () => {
    const records = new Records();
    const holder = open(new MemoryStore(records));
    const observer = open(new MemoryStore(records));
    const grant = await take(holder, request('a', { ttlMs: 400 }));
    for (let round = 0; round < 4; round += 1) {
      expect(await isContended(observer, 'a')).toBe(true);
      await sleep(200);
      expect(await holder.renew([{ grant, ttlMs: 400 }], call)).toEqual([{ status: 'held' }]);
    }
    expect(await isContended(observer, 'a')).toBe(true);
  });

  it('is not ended by what changes beside it in the record', async () => {
    const records = new Records();
    const shared = { kind: 'shared' } as const;
    const [one, two, observer] = [0, 1, 2].map(() => open(new MemoryStore(records)));
    if (one === undefined || two === undefined || observer === undefined) return expect.fail();
    await take(one, request('a', { ttlMs: 300, mode: shared }));
    const startedAt = performance.now();
    // Readers come and go: the first one's end stays.
    while (await isContended(observer, 'a')) {
      const grant = await take(two, request('a', { mode: shared }));
      await sleep(20);
      await two.release(grant, call);
    }
    const tookMs = performance.now() - startedAt;
    expect(tookMs).toBeGreaterThanOrEqual(290);
    expect(tookMs).toBeLessThan(2_000);
  });

  it('is not renewed by what its own process writes beside it', async () => {
    const records = new Records();
    const holder = open(new MemoryStore(records));
    const first = request('a', { mode: { kind: 'shared' } });
    const renewedBy = (): unknown => {
      const text = Buffer.from(records.byKey.get('locks/lock/a')?.value ?? []).toString();
      const { holds } = JSON.parse(text.split('\n')[1] ?? '') as { holds: { id: string; mark: number }[] };
      return holds.find(({ id }) => id === first.acquisitionId)?.mark;
    };
    await take(holder, first);
    const mark = renewedBy();
    expect(mark).toBeTypeOf('number');
    // Decided on what this process knows of its take.
    await take(holder, request('a', { mode: { kind: 'shared' } }));
    expect(renewedBy()).toBe(mark);
  });

  it('is written off by a process that knows it to be over, for who has just come', async () => {
    const records = new Records();
    const holder = open(new MemoryStore(records));
    const grant = await take(holder, request('a', { ttlMs: 100 }));
    await sleep(120);
    expect(await holder.renew([{ grant, ttlMs: 100 }], call)).toEqual([
      { status: 'lost', reason: 'expired' },
    ]);
    expect(await isContended(open(new MemoryStore(records)), 'a')).toBe(false);
  });

  it('is unaffected by the wall clocks', async () => {
    const records = new Records();
    await take(open(new MemoryStore(records)), request('a', { ttlMs: 60_000 }));
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 86_400_000 });
    try {
      expect(await isContended(open(new MemoryStore(records)), 'a')).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });

  it('is named by a timeout as one whose end this process could not see', async () => {
    const records = new Records();
    await take(open(new MemoryStore(records)), request('a', { ttlMs: 60_000 }));
    const locks = createLocks(open(new MemoryStore(records)));
    const waiting = locks.lock('a').acquire({ waitMs: 400 });
    await expect(waiting).rejects.toThrow(/seen it unchanged for its whole ttl.* expiry 'clock'/);
    await locks.close();
  });
});

describe('a store that tells its time in steps of a second', () => {
  const clock = { stepMs: 1_000, skewMs: 300 };

  /** A clock of a server that is ahead by `skewMs`, in whole seconds, as HTTP has it. */
  function dateOf(skewMs = 0): () => number {
    return () => Math.floor((performance.now() + skewMs) / 1_000) * 1_000;
  }

  it('lets a process that has just come take what is over', async () => {
    const records = new Records();
    await take(open(new MemoryStore(records, { clock, now: dateOf() })), request('a', { ttlMs: 100 }));
    expect(await isContended(open(new MemoryStore(records, { clock, now: dateOf() })), 'a')).toBe(true);
    // The ttl, twice the step for two readings, and the skew.
    await sleep(100 + 2_000 + 300);
    expect(await isContended(open(new MemoryStore(records, { clock, now: dateOf() })), 'a')).toBe(false);
  });

  it('ends no hold too early, where its servers are apart by the skew', async () => {
    for (let round = 0; round < 3; round += 1) {
      const records = new Records();
      const behind = new MemoryStore(records, { clock, now: dateOf(0) });
      await take(open(behind), request('a', { ttlMs: 400 }));
      const takenAt = performance.now();
      const ahead = new MemoryStore(records, { clock, now: dateOf(300) });
      while (performance.now() - takenAt < 400) {
        expect(await isContended(open(ahead), 'a')).toBe(true);
        await sleep(20);
      }
    }
  });

  it('is understood by processes that do not ask for it', async () => {
    const records = new Records();
    await take(open(new MemoryStore(records, { clock, now: dateOf() })), request('a', { ttlMs: 200 }));
    const observer = open(new MemoryStore(records));
    expect(await isContended(observer, 'a')).toBe(true);
    await until(async () => !(await isContended(observer, 'a')));
  });
});
