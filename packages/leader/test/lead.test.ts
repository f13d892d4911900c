import { createLocks } from '@locks/core';
import { memoryBackend, MemoryStore, memoryTestBackend } from '@locks/memory';
import { describe, expect, it, vi } from 'vitest';
import { election } from '../src/index.ts';
import { Candidate, forEver, until, withCandidates } from './candidate.ts';

describe('a campaign', () => {
  it('has one leader, and the others wait in the order in which they came', async () => {
    await withCandidates(async (add) => {
      const a = add('a');
      await until(() => expect(a.leads).toBe(true));
      const b = add('b');
      await until(async () => expect((await a.locks.inspect('scheduler')).waiters).toHaveLength(1));
      const c = add('c');
      await until(async () => expect((await a.locks.inspect('scheduler')).waiters).toHaveLength(2));
      expect([b.leads, c.leads]).toEqual([false, false]);
      a.current?.resign();
      await until(() => expect(b.leads).toBe(true));
      expect([a.leads, c.leads]).toEqual([false, false]);
      b.current?.resign();
      await until(() => expect(c.leads).toBe(true));
      expect(c.current?.fencingToken).toBeGreaterThan(b.led[0]?.fencingToken ?? 0n);
      expect(b.led[0]?.fencingToken).toBeGreaterThan(a.led[0]?.fencingToken ?? 0n);
    });
  });

  it('goes on after the work has returned: the next one leads, and later this one again, with the next epoch', async () => {
    await withCandidates(async (add) => {
      const a = add('a');
      await until(() => expect(a.leads).toBe(true));
      const b = add('b');
      await until(async () => expect((await a.locks.inspect('scheduler')).waiters).toHaveLength(1));
      a.endWork();
      await until(() => expect(b.leads).toBe(true));
      b.endWork();
      await until(() => expect(a.led).toHaveLength(2));
      expect(a.led.map(({ epoch }) => epoch)).toEqual([1, 2]);
      expect(b.led.map(({ epoch }) => epoch)).toEqual([1]);
      expect(a.led[1]?.acquisitionId).not.toBe(a.led[0]?.acquisitionId);
      expect(a.outcome).toBeUndefined();
    });
  });

  it('waits at least the back-off between two leaderships, so that a work that returns at once does not spin', async () => {
    const locks = createLocks(memoryBackend());
    const stop = new AbortController();
    const at: number[] = [];
    await election(locks, 'a').lead(
      () => {
        at.push(performance.now());
        if (at.length === 3) stop.abort();
      },
      { signal: stop.signal, backoff: { firstMs: 50 } },
    );
    expect(at).toHaveLength(3);
    // The pause is shortened by a fifth at most; timers may be 1 ms early.
    for (const [index, time] of at.slice(1).entries()) expect(time - (at[index] ?? 0)).toBeGreaterThan(38);
  });

  it('ends when its signal aborts: a leader once its work has settled, a candidate at once, and nothing stays behind', async () => {
    const store = new MemoryStore();
    const locks = createLocks(memoryBackend(store));
    const stop = new AbortController();
    let finish = (): void => {};
    const reasons: unknown[] = [];
    const leading = election(locks, 'scheduler').lead(
      async ({ signal }) => {
        await new Promise<void>((resolve) => (finish = resolve));
        reasons.push(signal.reason);
      },
      { signal: stop.signal },
    );
    await until(async () => expect(await locks.isLocked('scheduler')).toBe(true));
    const waiting = new Candidate(store, 'waits');
    await until(async () => expect((await locks.inspect('scheduler')).waiters).toHaveLength(1));
    waiting.stop.abort();
    await waiting.over;
    expect(waiting.outcome).toEqual({});
    await until(async () => expect((await locks.inspect('scheduler')).waiters).toHaveLength(0));
    let settled = false;
    void leading.then(() => (settled = true));
    stop.abort('stopping');
    expect(await locks.isLocked('scheduler')).toBe(true);
    expect(settled).toBe(false);
    finish();
    await leading;
    expect(reasons).toEqual(['stopping']);
    expect(await locks.isLocked('scheduler')).toBe(false);
  });

  it('does nothing where its signal has aborted before', async () => {
    const locks = createLocks(memoryBackend());
    const work = vi.fn();
    await election(locks, 'scheduler').lead(work, { signal: AbortSignal.abort() });
    expect(work).not.toHaveBeenCalled();
  });

  it('ends with LOCK_CLOSED when its manager is closed, leading or waiting', async () => {
    const store = new MemoryStore();
    const a = new Candidate(store, 'a');
    await until(() => expect(a.leads).toBe(true));
    const b = new Candidate(store, 'b');
    await until(async () => expect((await a.locks.inspect('scheduler')).waiters).toHaveLength(1));
    const { locks } = a;
    await b.locks.close();
    await locks.close();
    await Promise.all([a.over, b.over]);
    expect(a.led[0]?.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'closed' });
    expect(a.outcome?.error).toMatchObject({ code: 'LOCK_CLOSED' });
    expect(b.outcome?.error).toMatchObject({ code: 'LOCK_CLOSED' });
  });
});

describe('a leadership', () => {
  it('that resigns is handed over when its work has settled, and not before', async () => {
    const locks = createLocks(memoryBackend(), { ttlMs: 500 });
    const stop = new AbortController();
    const order: string[] = [];
    let finish = (): void => {};
    const leading = election(locks, 'scheduler').lead(
      async (leadership) => {
        const { signal } = leadership;
        leadership.resign();
        expect((signal.reason as Error).name).toBe('AbortError');
        expect(leadership.validForMs).toBe(0);
        await new Promise<void>((resolve) => (finish = resolve));
        order.push('settled');
        stop.abort();
      },
      { signal: stop.signal },
    );
    await until(async () => expect(await locks.isLocked('scheduler')).toBe(true));
    const next = locks.lock('scheduler').run(() => void order.push('next'));
    await until(async () => expect((await locks.inspect('scheduler')).waiters).toHaveLength(1));
    expect(order).toEqual([]);
    finish();
    await Promise.all([leading, next]);
    expect(order).toEqual(['settled', 'next']);
  });

  it('that is lost aborts its signal with LOCK_LOST before another leads, and the candidate comes back', async () => {
    const memory = memoryTestBackend();
    const locks = createLocks(memory, { ttlMs: 2_000 });
    const stop = new AbortController();
    const lost: unknown[] = [];
    const seen: bigint[] = [];
    const leading = election(locks, 'scheduler').lead(
      async ({ signal, fencingToken }) => {
        seen.push(fencingToken);
        await forEver({ signal }).catch((error: unknown) => {
          lost.push(error);
          throw error;
        });
      },
      { signal: stop.signal, backoff: { firstMs: 1 } },
    );
    await until(() => expect(seen).toHaveLength(1));
    const nextHeld = locks.lock('scheduler').run(() => lost.length);
    await until(async () => expect((await locks.inspect('scheduler')).waiters).toHaveLength(1));
    expect(memory.lose('scheduler')).toBe(1);
    // The signal had aborted before the next holder entered.
    expect(await nextHeld).toBe(1);
    expect(lost).toMatchObject([{ code: 'LOCK_LOST', reason: 'taken-over' }]);
    await until(() => expect(seen).toHaveLength(2));
    expect(seen[1]).toBeGreaterThan(seen[0] ?? 0n);
    stop.abort();
    await leading;
  });

  it('knows after a stall that it is over, before any timer ran', async () => {
    const memory = memoryTestBackend();
    const locks = createLocks(memory, { ttlMs: 2_000 });
    const stop = new AbortController();
    const found: unknown[] = [];
    const leading = election(locks, 'scheduler').lead(
      (leadership) => {
        if (found.length > 0) return;
        const { signal } = leadership;
        memory.advance(3_000);
        found.push(leadership.validForMs, leadership.signal.aborted, signal.aborted);
        try {
          leadership.assertValid();
        } catch (error) {
          found.push(error);
          stop.abort();
          throw error;
        }
      },
      { signal: stop.signal },
    );
    await leading;
    expect(found).toMatchObject([0, true, true, { code: 'LOCK_LOST', reason: 'expired' }]);
  });

  it('whose work ignores the loss keeps its candidate from the next leadership until it has settled', async () => {
    const memory = memoryTestBackend();
    const locks = createLocks(memory, { ttlMs: 2_000 });
    const stop = new AbortController();
    let running = 0;
    let most = 0;
    let finish = (): void => {};
    let began = 0;
    const leading = election(locks, 'scheduler').lead(
      async () => {
        began += 1;
        running += 1;
        most = Math.max(most, running);
        await new Promise<void>((resolve) => (finish = resolve));
        running -= 1;
      },
      { signal: stop.signal, backoff: { firstMs: 0, longestMs: 0 } },
    );
    await until(() => expect(began).toBe(1));
    memory.lose('scheduler');
    // Another one gets the lock twice: this candidate does not wait for it.
    for (let turn = 0; turn < 2; turn += 1) await locks.lock('scheduler').run(() => {});
    expect(began).toBe(1);
    finish();
    await until(() => expect(began).toBe(2));
    expect(most).toBe(1);
    stop.abort();
    finish();
    await leading;
  });
});

describe('a store that is away', () => {
  it('ends the leadership before its ttl is over; the campaign goes on, and leads when the store is back', async () => {
    const memory = memoryTestBackend();
    const locks = createLocks(memory, { ttlMs: 200 });
    const stop = new AbortController();
    const reasons: unknown[] = [];
    let began = 0;
    const leading = election(locks, 'scheduler').lead(
      async ({ signal }) => {
        began += 1;
        await forEver({ signal }).catch((error: unknown) => void reasons.push(error));
      },
      { signal: stop.signal, backoff: { firstMs: 1, longestMs: 5 } },
    );
    await until(() => expect(began).toBe(1));
    const repair = memory.fail();
    await until(() => expect(reasons).toHaveLength(1));
    expect(reasons).toMatchObject([{ code: 'LOCK_LOST', reason: 'unconfirmed' }]);
    expect(began).toBe(1);
    repair();
    await until(() => expect(began).toBe(2));
    stop.abort();
    await leading;
  });

  it('with an error that core does not repeat is reported, and tried again with the back-off', async () => {
    const memory = memoryTestBackend();
    const broken = Object.assign(memory, { isRetryable: () => false });
    const locks = createLocks(broken);
    const repair = memory.fail();
    const stop = new AbortController();
    const errors: unknown[] = [];
    const work = vi.fn(() => stop.abort());
    const leading = election(locks, 'scheduler').lead(work, {
      signal: stop.signal,
      backoff: { firstMs: 1, longestMs: 2 },
      onError(error) {
        errors.push(error);
        if (errors.length === 3) repair();
      },
    });
    await leading;
    expect(work).toHaveBeenCalledOnce();
    expect(errors).toHaveLength(3);
    for (const error of errors) expect(error).toMatchObject({ code: 'LOCK_BACKEND' });
  });
});
