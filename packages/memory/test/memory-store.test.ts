import type { Grant } from '@locks/core/backend';
import { expect, test, vi } from 'vitest';
import { MemoryStore } from '../src/memory-store.ts';
import { request, useFakeClock } from './fixture.ts';

const NAMES = 100_000;

function holding(store: MemoryStore, name: string): string[] {
  return store.holders(name).map(({ id }) => id);
}

function grant(id: string, fencingToken = 1n): Grant {
  return { request: request('a', id), fencingToken, countedFrom: 0 };
}

test('a resource is held by the first who asks, and by nobody else', () => {
  const store = new MemoryStore();
  const first = store.acquire(request('a', 'first'), false);
  expect(holding(store, 'a')).toEqual(['first']);
  expect(store.acquire(request('a', 'second'), false)).toEqual({ status: 'contended' });
  expect(store.acquire(request('a', 'first'), false)).toMatchObject(first);
});

test('an expired hold is taken over by exactly one', () => {
  useFakeClock();
  const store = new MemoryStore();
  store.acquire(request('a', 'dead', 1_000), false);
  vi.advanceTimersByTime(1_000);
  expect(store.acquire(request('a', 'next'), false).status).toBe('granted');
  expect(store.acquire(request('a', 'third'), false).status).toBe('contended');
  expect(holding(store, 'a')).toEqual(['next']);
  expect(store.renew(grant('next', 2n), 1_000)).toEqual({ status: 'held' });
});

test('who expired can neither renew nor release its successor', () => {
  useFakeClock();
  const store = new MemoryStore();
  store.acquire(request('a', 'old', 1_000), false);
  vi.advanceTimersByTime(1_000);
  expect(store.renew(grant('old'), 1_000)).toEqual({ status: 'lost', reason: 'expired' });
  store.acquire(request('a', 'new'), false);
  expect(store.renew(grant('old'), 1_000)).toEqual({ status: 'lost', reason: 'taken-over' });
  expect(store.release('a', 'old')).toBeUndefined();
  store.abandon('a', 'old');
  expect(holding(store, 'a')).toEqual(['new']);
});

test('a renewal moves the end to the ttl from now', () => {
  useFakeClock();
  const store = new MemoryStore();
  store.acquire(request('a', 'holder', 1_000), false);
  vi.advanceTimersByTime(900);
  expect(store.renew(grant('holder'), 500)).toEqual({ status: 'held' });
  vi.advanceTimersByTime(499);
  expect(holding(store, 'a')).toEqual(['holder']);
  vi.advanceTimersByTime(1);
  expect(holding(store, 'a')).toEqual([]);
});

test('the queue is served in its order, also by the end of an abandoned hold', () => {
  useFakeClock();
  const store = new MemoryStore();
  const served: string[] = [];
  store.acquire(request('a', 'dead', 1_000), false);
  for (const id of ['w1', 'w2']) {
    store.acquire(request('a', id, 1_000), true);
    store.listen(request('a', id), ({ id }) => served.push(id));
  }
  vi.advanceTimersByTime(1_001);
  expect(served).toEqual(['w1']);
  store.release('a', 'w1');
  expect(served).toEqual(['w1', 'w2']);
});

test('a queue is not overtaken in the moment in which its resource comes free', () => {
  useFakeClock();
  const store = new MemoryStore();
  store.acquire(request('a', 'dead', 1_000), false);
  store.acquire(request('a', 'waiter'), true);
  // Time passed, but no timer ran: the process was stopped.
  vi.setSystemTime(Date.now() + 1_000);
  vi.spyOn(store, 'now').mockReturnValue(performance.now() + 1_000);
  expect(store.acquire(request('a', 'passer-by'), false).status).toBe('contended');
  expect(holding(store, 'a')).toEqual(['waiter']);
});

test('who is forgotten neither holds nor waits, and the next in line goes on', () => {
  const store = new MemoryStore();
  store.acquire(request('a', 'holder'), false);
  store.acquire(request('a', 'w1'), true);
  store.acquire(request('a', 'w2'), true);
  store.abandon('a', 'w1');
  expect(store.queued('a').map(({ id }) => id)).toEqual(['w2']);
  store.abandon('a', 'holder');
  expect(holding(store, 'a')).toEqual(['w2']);
  store.abandon('a', 'w2');
  expect(store.names()).toEqual([]);
});

test('the token rises at every change of holder, also of a name that was forgotten between', () => {
  const store = new MemoryStore();
  const tokens = ['x', 'y', 'z'].map((id) => {
    store.acquire(request('a', id), false);
    return store.release('a', id)?.token;
  });
  expect(tokens).toEqual([1, 2, 3]);
});

test('nothing is kept of 100 000 names that were acquired and released, or waited for', () => {
  const store = new MemoryStore();
  for (let index = 0; index < NAMES; index += 1) {
    const name = `name-${index}`;
    store.acquire(request(name, 'holder'), false);
    store.acquire(request(name, 'waiter'), true);
    store.release(name, 'holder');
    store.abandon(name, 'waiter');
  }
  expect(store.names()).toEqual([]);
});

test('nothing is kept of names whose holders died, a minute after their ends', () => {
  useFakeClock();
  const store = new MemoryStore();
  for (let index = 0; index < 1_000; index += 1)
    store.acquire(request(`name-${index}`, 'dead', 5_000), false);
  vi.advanceTimersByTime(65_000 + 60_000);
  expect(store.names()).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
});

test('no timer of a store keeps the process alive', () => {
  useFakeClock();
  const setTimer = vi.spyOn(globalThis, 'setTimeout');
  const store = new MemoryStore();
  store.acquire(request('a', 'holder'), false);
  store.acquire(request('a', 'waiter'), true);
  store.renew(grant('holder'), 2_000);
  const timers = setTimer.mock.results.map((result) => result.value as NodeJS.Timeout);
  expect(timers.length).toBeGreaterThan(1);
  expect(timers.filter((timer) => timer.hasRef())).toEqual([]);
});

test('only a resource with waiters has a timer of its own, and it goes with the last of them', () => {
  useFakeClock();
  const store = new MemoryStore();
  for (let index = 0; index < 100; index += 1) store.acquire(request(`name-${index}`, 'holder'), false);
  const before = vi.getTimerCount();
  expect(before).toBe(1);
  store.acquire(request('name-7', 'waiter'), true);
  expect(vi.getTimerCount()).toBe(before + 1);
  store.release('name-7', 'holder');
  expect(vi.getTimerCount()).toBe(before);
});

test('a ttl longer than a timer can be does not end a hold early', () => {
  useFakeClock();
  const store = new MemoryStore();
  const ttlMs = 2 ** 31 + 5_000;
  store.acquire(request('a', 'holder', ttlMs), false);
  store.acquire(request('a', 'waiter', ttlMs), true);
  vi.advanceTimersByTime(2 ** 31);
  expect(holding(store, 'a')).toEqual(['holder']);
  vi.advanceTimersByTime(5_001);
  expect(holding(store, 'a')).toEqual(['waiter']);
});
