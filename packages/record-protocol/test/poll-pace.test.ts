import { describe, expect, it } from 'vitest';
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

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

describe('the pace of the polls', () => {
  it('is quick for who is next, and for others leaves out half of the turns before them', async () => {
    const pace = new PollPace(2);
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
    const pace = new PollPace(2);
    pace.changed(rowWith(0), 'me');
    await pause(100);
    expect(pace.pauseMs).toBeGreaterThan(40);
    pace.changed();
    expect(pace.pauseMs).toBeLessThan(20);
  });
});
