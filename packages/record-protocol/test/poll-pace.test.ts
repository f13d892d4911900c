import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { HoldRecord } from '@locks/core/rules';
import { NO_ROW, type LockRow } from '../src/lock-row.ts';
import { PollPace } from '../src/poll-pace.ts';

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
  it('is quick for who is next, and for others leaves out half of the turns before them', () => {
    const pace = new PollPace(2);
    pace.changed(rowWith(10), 'me');
    expect(pace.pauseMs).toBe(5);
    vi.advanceTimersByTime(40);
    pace.changed(rowWith(6), 'me');
    // Each turn took ten milliseconds, and the present one may end at once: three of six.
    expect(pace.pauseMs).toBe(30);
    pace.changed(rowWith(0), 'me');
    expect(pace.pauseMs).toBe(2);
  });

  it('takes a renewal and newcomers for no change, and another holder, or a reader, for one', () => {
    const pace = new PollPace(2);
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
    const pace = new PollPace(2);
    pace.changed(rowWith(0), 'me');
    vi.advanceTimersByTime(100);
    expect(pace.pauseMs).toBe(42);
    pace.changed();
    expect(pace.pauseMs).toBe(2);
  });
});
