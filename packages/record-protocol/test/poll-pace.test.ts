import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { HoldRecord } from '@locks/core/rules';
import { NO_ROW, type LockRow } from '../src/lock-row.ts';
import { PollPace } from '../src/poll-pace.ts';

const PACE = { minPollMs: 2, maxPollMs: 800, waiterTtlMs: 3_000, pollsPresentTurn: false };
const isNotCalled = () => false;
const mode = { kind: 'exclusive' } as const;

/** A held row with so many waiters of others before the one of `me`. */
function rowWith(others: number): LockRow {
  const waiter = (client: string) => ({ id: client, mode, label: undefined, client, ttl: 1, since: 0 });
  const hold = { ...waiter('holder'), token: 1, until: 1, span: undefined, stolen: false };
  const waiters = [...Array.from({ length: others }, () => waiter('other')), waiter('me')];
  return { ...NO_ROW, version: 1, holds: [hold], waiters };
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

describe('the pace of the polls', () => {
  it('is quick for who is next, and for others leaves out a part of the turns before them', () => {
    const pace = new PollPace(PACE, isNotCalled);
    pace.changed(rowWith(10), 'me');
    expect(pace.pauseMs).toBe(5);
    vi.advanceTimersByTime(40);
    pace.changed(rowWith(6), 'me');
    // Each turn took ten milliseconds, and seven are left: eight tenths of them.
    expect(pace.pauseMs).toBe(56);
    vi.advanceTimersByTime(56);
    expect(pace.pauseMs).toBe(5);
    vi.advanceTimersByTime(4);
    pace.changed(rowWith(0), 'me');
    expect(pace.pauseMs).toBe(8);
    vi.advanceTimersByTime(8);
    expect(pace.pauseMs).toBe(2);
  });

  it('goes on through the present turn where the table says so', () => {
    const pace = new PollPace({ ...PACE, pollsPresentTurn: true }, isNotCalled);
    pace.changed(rowWith(10), 'me');
    vi.advanceTimersByTime(40);
    pace.changed(rowWith(6), 'me');
    expect(pace.pauseMs).toBe(48);
    pace.changed(rowWith(0), 'me');
    expect(pace.pauseMs).toBe(2);
  });

  it('estimates the turns by the lower median of late: a poll that came late makes the next ones no later', () => {
    const pace = new PollPace(PACE, isNotCalled);
    pace.changed(rowWith(10), 'me');
    vi.advanceTimersByTime(10);
    pace.changed(rowWith(9), 'me');
    vi.advanceTimersByTime(500);
    pace.changed(rowWith(8), 'me');
    expect(pace.pauseMs).toBe(72);
    vi.advanceTimersByTime(500);
    pace.changed(rowWith(6), 'me');
    // No turn is left out for longer than 50 ms.
    expect(pace.pauseMs).toBe(350);
  });

  it('polls who is far behind seldom, and never in vain for a push of others', () => {
    const pace = new PollPace(PACE, isNotCalled);
    pace.changed(rowWith(3), 'me');
    expect([1, 2, 3, 4].map(() => pace.pushed())).toEqual([false, false, false, true]);
    pace.changed(rowWith(20), 'me');
    vi.advanceTimersByTime(100_000);
    expect(pace.pauseMs).toBe(2_000);
    const called = new PollPace(PACE, () => true);
    called.changed(rowWith(20), 'me');
    expect(called.pauseMs).toBe(2_000);
    vi.advanceTimersByTime(100_000);
    expect(called.pauseMs).toBe(9_600);
    called.changed(rowWith(0), 'me');
    expect(called.pauseMs).toBe(200);
  });

  it('takes a renewal and newcomers for no change, and another holder, or a reader, for one', () => {
    const pace = new PollPace(PACE, isNotCalled);
    const { holds, ...row } = rowWith(0);
    const [hold] = holds as [HoldRecord];
    pace.changed({ ...row, holds }, 'me');
    vi.advanceTimersByTime(100);
    const newcomer = { ...row.waiters[0]!, id: 'newcomer', client: 'other' };
    pace.changed({ ...row, holds: [{ ...hold, until: 2 }], waiters: [...row.waiters, newcomer] }, 'me');
    expect(pace.pauseMs).toBe(42);
    for (const change of [{ id: 'another' }, { mode: { kind: 'shared' } as const }]) {
      pace.changed({ ...row, holds: [{ ...hold, ...change }] }, 'me');
      expect(pace.pauseMs).toBe(2);
      vi.advanceTimersByTime(100);
    }
  });

  it('grows while nothing changes', () => {
    const pace = new PollPace(PACE, isNotCalled);
    pace.changed(rowWith(0), 'me');
    vi.advanceTimersByTime(100);
    expect(pace.pauseMs).toBe(42);
    pace.mayHaveChanged();
    expect(pace.pauseMs).toBe(2);
  });
});
