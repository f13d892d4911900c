import { describe, expect, it } from 'vitest';
import { NO_ROW, type LockRow } from '../src/lock-row.ts';
import { PollPace } from '../src/poll-pace.ts';
import { acquire, call, freshPrefix, open, request, take, until, useServer } from './fixture.ts';

useServer();

const mode = { kind: 'exclusive' } as const;

/** A held row with so many waiters of others before the one of `me`. */
function rowWith(others: number): LockRow {
  const waiter = (client: string) => ({ id: client, mode, label: undefined, client, ttl: 1, since: 0 });
  const hold = { ...waiter('holder'), token: 1, until: 1, span: undefined, stolen: false };
  const waiters = [...Array.from({ length: others }, () => waiter('other')), waiter('me')];
  return { ...NO_ROW, version: 1, holds: [hold], waiters };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

describe('the pace of the polls', () => {
  it('is quick for who is next, and for others leaves out half of the turns before them', async () => {
    const pace = new PollPace();
    pace.changed(rowWith(10), 'me');
    expect(pace.pauseMs).toBeGreaterThanOrEqual(5);
    expect(pace.pauseMs).toBeLessThan(10);
    await pause(40);
    pace.changed(rowWith(6), 'me');
    // Each turn took ten milliseconds, and the present one may end at once: three of six.
    expect(pace.pauseMs).toBeGreaterThanOrEqual(29);
    // The most that is left out, and what the time since the change adds on a busy machine.
    expect(pace.pauseMs).toBeLessThan(50 + 10);
    pace.changed(rowWith(0), 'me');
    expect(pace.pauseMs).toBeLessThan(5);
  });

  it('grows while nothing changes', async () => {
    const pace = new PollPace();
    pace.changed(rowWith(0), 'me');
    await pause(100);
    expect(pace.pauseMs).toBeGreaterThan(40);
    pace.changed();
    expect(pace.pauseMs).toBeLessThan(20);
  });
});

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
