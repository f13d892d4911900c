import { describe, expect, it } from 'vitest';
import { TimeBudget } from '../../src/backend/index.ts';

/** Looks at the budget whenever it wants to be looked at, `lateMs` late each time; gives when it was over. */
function endOf(budget: TimeBudget, lateMs: (look: number) => number): number {
  for (let look = 1; look < 1_000; look += 1) {
    const now = budget.reviewAt + lateMs(look);
    if (budget.isOver(now)) return now;
  }
  throw new Error('the budget never ended');
}

describe('a time budget', () => {
  it('is over at its end where every look comes in time', () => {
    const budget = new TimeBudget(1_000, 100);
    expect(budget.endsAt).toBe(1_100);
    expect(budget.isOver(1_049)).toBe(false);
    expect(budget.reviewAt).toBe(1_050);
    expect(endOf(budget, () => 0)).toBe(1_100);
    expect(budget.isOver(1_000)).toBe(true);
  });

  it('is not moved by a timer that is late by a few milliseconds', () => {
    expect(endOf(new TimeBudget(0, 100), (look) => (look === 1 ? 4 : 0))).toBe(100);
  });

  it.each([101, 150, 300, 1_200, 60_000])(
    'leaves at least half of its time after a stall of %i ms that began with it',
    (stallMs) => {
      const budget = new TimeBudget(0, 100);
      expect(budget.isOver(stallMs)).toBe(false);
      const end = endOf(budget, () => 0);
      expect(end - stallMs).toBeGreaterThanOrEqual(49);
      expect(end - stallMs).toBeLessThanOrEqual(100);
    },
  );

  it('adds no more than twice what a late look has shown, since the stall may have begun before its timer was due', () => {
    expect(endOf(new TimeBudget(0, 10_000), (look) => (look === 1 ? 30 : 0))).toBe(10_060);
  });

  it('ends in a process that stands still again and again', () => {
    let stalledMs = 0;
    const end = endOf(new TimeBudget(0, 1_000), () => {
      stalledMs += 300;
      return 300;
    });
    expect(end).toBeLessThanOrEqual(1_000 + 2 * stalledMs);
    expect(stalledMs).toBeLessThanOrEqual(6 * 300);
  });

  it('ends at its latest end, whatever stood still', () => {
    const budget = new TimeBudget(0, 1_000, 1_500);
    expect(budget.isOver(1_400)).toBe(false);
    expect(budget.endsAt).toBe(1_500);
    expect(budget.isOver(1_499)).toBe(false);
    expect(budget.isOver(1_500)).toBe(true);
  });

  it('never ends where it has no limit', () => {
    const budget = new TimeBudget(0, Number.POSITIVE_INFINITY);
    expect(budget.isOver(1e12)).toBe(false);
    expect(budget.endsAt).toBe(Number.POSITIVE_INFINITY);
  });
});
