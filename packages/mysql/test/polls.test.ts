import { expect, it } from 'vitest';
import { acquire, call, freshPrefix, open, request, take, until, useServer } from './fixture.ts';

useServer();

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

it('looks soon for a lock that this process handed to another, and that is behind it again', async () => {
  const tablePrefix = freshPrefix();
  const [here, there] = [open({ tablePrefix }), open({ tablePrefix })];
  const gaps: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const first = await take(here, request('a'));
    const between = acquire(there, request('a'));
    await until(async () => (await here.inspect('a', call)).waiters.length === 1);
    const behind = acquire(here, request('a'));
    await until(async () => (await here.inspect('a', call)).waiters.length === 2);
    await here.release(first, call);
    await there.release(await between, call);
    const freeAt = performance.now();
    const last = await behind;
    gaps.push(performance.now() - freeAt);
    await here.release(last, call);
  }
  // A slow poll alone takes up to 800 ms; the other process needed one quick poll before, at most.
  expect(gaps.toSorted((a, b) => a - b)[2]).toBeLessThan(250);
}, 20_000);

it('grants to a waiter whose turn another one of its process comes upon', async () => {
  const tablePrefix = freshPrefix();
  const [here, there] = [open({ tablePrefix, maxPollMs: 1_000 }), open({ tablePrefix })];
  const gaps: number[] = [];
  for (let round = 0; round < 4; round += 1) {
    const first = await take(there, request('a'));
    const waiting = acquire(here, request('a'));
    // Until then its polls are seldom.
    await pause(2_600);
    await there.release(first, call);
    const freeAt = performance.now();
    const other = request('a');
    void here.attempt(other, true, call);
    const second = await waiting;
    gaps.push(performance.now() - freeAt);
    await here.abandon(other, call);
    await here.release(second, call);
  }
  expect(gaps.toSorted((a, b) => a - b)[2]).toBeLessThan(200);
}, 30_000);
