import { createLocks } from '@locks/core';
import { memoryBackend, MemoryStore, memoryTestBackend } from '@locks/memory';
import { describe, expect, it, vi } from 'vitest';
import { election } from '../src/index.ts';
import { Candidate } from './candidate.ts';

const until = (condition: () => void | Promise<void>) =>
  vi.waitFor(condition, { timeout: 20_000, interval: 2 });

describe('leader', () => {
  it('is undefined while nobody leads, and takes no part', async () => {
    const locks = createLocks(memoryBackend());
    expect(await election(locks, 'scheduler').leader()).toBeUndefined();
    expect(await locks.inspect('scheduler')).toMatchObject({ holders: [], waiters: [] });
  });

  it('says who leads, for how long, and until when', async () => {
    const store = new MemoryStore();
    const a = new Candidate(store, 'http://10.0.0.7:8080');
    await until(() => expect(a.leads).toBe(true));
    const observer = createLocks(memoryBackend(store));
    const found = await election(observer, 'scheduler').leader();
    const { acquisitionId, fencingToken } = a.led[0] ?? {};
    expect(found).toMatchObject({ label: 'http://10.0.0.7:8080', acquisitionId, fencingToken });
    expect(found?.expiresInMs).toBeLessThanOrEqual(500);
    await until(async () =>
      expect((await election(observer, 'scheduler').leader())?.leadingForMs).toBeGreaterThan(0),
    );
    expect(JSON.parse(JSON.stringify(found))).toMatchObject({ fencingToken: `${fencingToken}` });
    a.stop.abort();
    await a.over;
    expect(await election(observer, 'scheduler').leader()).toBeUndefined();
  });

  it('does not take a reader or a permit for a leader', async () => {
    const locks = createLocks(memoryBackend());
    await locks.readWriteLock('scheduler').read.acquire();
    expect(await election(locks, 'scheduler').leader()).toBeUndefined();
    await locks.close();
  });

  it('rejects with the error of the store', async () => {
    const memory = memoryTestBackend();
    memory.fail();
    await expect(election(createLocks(memory), 'scheduler').leader()).rejects.toMatchObject({
      code: 'LOCK_BACKEND',
    });
  });
});

describe('watch', () => {
  it('gives the leader of the moment, and then every change, once', async () => {
    const store = new MemoryStore();
    const observer = createLocks(memoryBackend(store));
    const stop = new AbortController();
    const seen: (string | undefined)[] = [];
    const watching = (async () => {
      for await (const current of election(observer, 'scheduler').watch({ signal: stop.signal, pollMs: 10 }))
        seen.push(current?.label);
    })();
    await until(() => expect(seen).toEqual([undefined]));
    const a = new Candidate(store, 'a');
    await until(() => expect(seen).toEqual([undefined, 'a']));
    const b = new Candidate(store, 'b');
    await until(async () => expect((await observer.inspect('scheduler')).waiters).toHaveLength(1));
    a.stop.abort();
    await until(() => expect(seen).toEqual([undefined, 'a', 'b']));
    b.stop.abort();
    await until(() => expect(seen).toEqual([undefined, 'a', 'b', undefined]));
    stop.abort();
    await watching;
  });

  it('tells two leaderships of one candidate apart', async () => {
    const store = new MemoryStore();
    const a = new Candidate(store, 'a', { backoff: { firstMs: 0, longestMs: 0 } });
    await until(() => expect(a.leads).toBe(true));
    const ids = new Set<string | undefined>();
    for await (const current of election(createLocks(memoryBackend(store)), 'scheduler').watch({
      pollMs: 10,
    })) {
      if (current !== undefined) ids.add(current.acquisitionId);
      if (ids.size === 3) break;
      if (a.current?.acquisitionId === current?.acquisitionId) a.current?.resign();
    }
    a.stop.abort();
    await a.over;
    expect(a.led.length).toBeGreaterThanOrEqual(3);
  });

  it('asks once in pollMs, also while the store is away, and goes on when it is back', async () => {
    const memory = memoryTestBackend();
    const locks = createLocks(memory);
    const lease = await locks.lock('scheduler').acquire({ label: 'a' });
    const inspect = vi.spyOn(memory, 'inspect');
    const repair = memory.fail();
    const stop = new AbortController();
    const seen: (string | undefined)[] = [];
    const startedAt = performance.now();
    const watching = (async () => {
      for await (const current of election(locks, 'scheduler').watch({ signal: stop.signal, pollMs: 20 }))
        seen.push(current?.label);
    })();
    await until(() => expect(inspect.mock.calls.length).toBeGreaterThan(3));
    expect(seen).toEqual([]);
    expect(inspect.mock.calls.length).toBeLessThanOrEqual((performance.now() - startedAt) / 19 + 2);
    repair();
    await until(() => expect(seen).toEqual(['a']));
    stop.abort();
    await watching;
    await lease.release();
  });

  it('ends at once when its signal aborts, also while the store gives no answer', async () => {
    const memory = memoryTestBackend();
    const locks = createLocks(memory);
    const asked = vi.spyOn(memory, 'inspect').mockImplementation(() => new Promise(() => {}));
    const stop = new AbortController();
    const watching = (async () => {
      for await (const _ of election(locks, 'scheduler').watch({ signal: stop.signal }))
        expect.fail('nothing was answered');
    })();
    await until(() => expect(asked).toHaveBeenCalled());
    stop.abort();
    await watching;
  });

  it('refuses bad arguments at once, and ends with LOCK_CLOSED when the manager is closed', async () => {
    const locks = createLocks(memoryBackend());
    for (const options of [{ pollMs: 5 }, { signal: 5 }, { everyMs: 5 }]) {
      expect(() => election(locks, 'a').watch(options as object)).toThrow(
        expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
      );
    }
    const iterator = election(locks, 'a').watch({ pollMs: 10 })[Symbol.asyncIterator]();
    expect(await iterator.next()).toEqual({ done: false, value: undefined });
    await locks.close();
    await expect(iterator.next()).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
  });
});
