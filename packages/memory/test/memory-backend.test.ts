import { createLocks, type ResourceState } from '@locks/core';
import { expect, test, vi } from 'vitest';
import { MemoryStore, memoryBackend } from '../src/index.ts';
import { call, granted, request, useFakeClock } from './fixture.ts';

async function all(states: AsyncIterable<ResourceState>): Promise<ResourceState[]> {
  const found: ResourceState[] = [];
  for await (const state of states) found.push(state);
  return found;
}

test('two backends on one store exclude each other', async () => {
  const store = new MemoryStore();
  const [one, other] = [createLocks(memoryBackend(store)), createLocks(memoryBackend(store))];
  const lease = await one.lock('a').acquire();
  expect(await other.lock('a').tryAcquire()).toBeUndefined();
  await lease.release();
  await using next = await other.lock('a').acquire();
  expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
});

test('two backends with stores of their own know nothing of each other', async () => {
  const [one, other] = [createLocks(memoryBackend()), createLocks(memoryBackend())];
  await using mine = await one.lock('a').acquire();
  await using theirs = await other.lock('a').acquire();
  expect(mine.acquisitionId).not.toBe(theirs.acquisitionId);
});

test('nothing is kept of 100 000 locks that were acquired and released', async () => {
  const store = new MemoryStore();
  const locks = createLocks(memoryBackend(store));
  for (let index = 0; index < 100_000; index += 1) {
    const lease = await locks.lock(`name-${index}`).acquire();
    await lease.release();
  }
  expect(store.names()).toEqual([]);
});

test('an attempt repeated by the same id gives the same token and what is left of the lease', async () => {
  useFakeClock();
  const backend = memoryBackend();
  const first = granted(await backend.attempt(request('a', 'me', 1_000), true, call));
  expect(first.validForMs).toBeUndefined();
  vi.advanceTimersByTime(400);
  const again = granted(await backend.attempt(request('a', 'me', 1_000), true, call));
  expect(again.fencingToken).toBe(first.fencingToken);
  expect(again.validForMs).toBe(600);
  expect(again.countedFrom).toBe(performance.now());
});

test('a waiter is handed the lease the moment it is released', async () => {
  const backend = memoryBackend();
  const holder = granted(await backend.attempt(request('a', 'holder'), true, call));
  expect(await backend.attempt(request('a', 'waiter'), true, call)).toEqual({ status: 'contended' });
  const turn = backend.awaitTurn?.(request('a', 'waiter'), call);
  expect(await backend.release(holder, call)).toBe('released');
  expect(await turn).toMatchObject({ request: { acquisitionId: 'waiter' } });
});

test('a lease that is handed off before its waiter listens is found by another attempt', async () => {
  const backend = memoryBackend();
  const holder = granted(await backend.attempt(request('a', 'holder'), true, call));
  await backend.attempt(request('a', 'waiter'), true, call);
  await backend.release(holder, call);
  expect(await backend.awaitTurn?.(request('a', 'waiter'), call)).toBeUndefined();
  expect((await backend.attempt(request('a', 'waiter'), true, call)).status).toBe('granted');
});

test('a wait ends with its signal, and the abandoned waiter is not served', async () => {
  const backend = memoryBackend();
  const holder = granted(await backend.attempt(request('a', 'holder'), true, call));
  await backend.attempt(request('a', 'waiter'), true, call);
  const controller = new AbortController();
  const turn = backend.awaitTurn?.(request('a', 'waiter'), { ...call, signal: controller.signal });
  controller.abort();
  expect(await turn).toBeUndefined();
  await backend.abandon(request('a', 'waiter'), call);
  await backend.release(holder, call);
  expect(await backend.inspect('a', call)).toEqual({ name: 'a', holders: [], waiters: [] });
});

test('a release or renewal by a stranger changes nothing', async () => {
  const backend = memoryBackend();
  const grant = granted(await backend.attempt(request('a', 'holder'), true, call));
  const forged = { ...grant, request: request('a', 'stranger') };
  expect(await backend.release(forged, call)).toBe('not-held');
  expect(await backend.renew([{ grant: forged, ttlMs: 1_000 }], call)).toEqual([
    { status: 'lost', reason: 'taken-over' },
  ]);
  expect(await backend.renew([{ grant, ttlMs: 1_000 }], call)).toEqual([{ status: 'held' }]);
});

test('inspect shows the holder and, in their order, those who wait', async () => {
  useFakeClock();
  const backend = memoryBackend();
  const labelled = { ...request('a', 'holder', 1_000), label: 'first' };
  await backend.attempt(labelled, true, call);
  await backend.attempt(request('a', 'w1'), true, call);
  vi.advanceTimersByTime(300);
  await backend.attempt({ ...request('a', 'w2'), label: 'third' }, true, call);
  const mode = { kind: 'exclusive' };
  expect(await backend.inspect('a', call)).toEqual({
    name: 'a',
    holders: [
      { acquisitionId: 'holder', label: 'first', mode, fencingToken: 1n, heldForMs: 300, expiresInMs: 700 },
    ],
    waiters: [
      { acquisitionId: 'w1', mode, waitingForMs: 300 },
      { acquisitionId: 'w2', label: 'third', mode, waitingForMs: 0 },
    ],
  });
});

test('list shows exactly the names with the prefix that are held now', async () => {
  useFakeClock();
  const backend = memoryBackend();
  await backend.attempt(request('job:1', 'one', 1_000), true, call);
  await backend.attempt(request('job:2', 'two', 5_000), true, call);
  await backend.attempt(request('other', 'three', 5_000), true, call);
  vi.advanceTimersByTime(1_000);
  const states = await all(backend.list?.('job:', call) ?? (async function* () {})());
  expect(states.map((state) => state.name)).toEqual(['job:2']);
});

test('a forced release ends the given hold only, and those who wait go on', async () => {
  const backend = memoryBackend();
  await backend.attempt(request('a', 'holder'), true, call);
  await backend.attempt(request('a', 'waiter'), true, call);
  expect(await backend.forceRelease?.('a', 'somebody else', call)).toEqual([]);
  expect(await backend.forceRelease?.('a', 'holder', call)).toMatchObject([{ acquisitionId: 'holder' }]);
  expect((await backend.inspect('a', call)).holders).toMatchObject([{ acquisitionId: 'waiter' }]);
  expect(await backend.forceRelease?.('free', undefined, call)).toEqual([]);
});

test('a ttl below the floor, under which a lease would be over before it is used, is refused', () => {
  const locks = createLocks(memoryBackend());
  expect(() => locks.lock('a', { ttlMs: 9 })).toThrow(
    expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
  );
});
