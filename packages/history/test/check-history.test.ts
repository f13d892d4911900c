import { describe, expect, it } from 'vitest';
import { checkHistory } from '../src/index.ts';
import { Planted } from './planted.ts';
import { brokenHistories, keptHistories, unjudgedHistories } from './planted-histories.ts';

describe('checkHistory', () => {
  it.each(brokenHistories)('finds $title', ({ history, expectations = [], kinds, says, concerns }) => {
    const { violations: found } = checkHistory(history.events, ...expectations);
    expect(found.map(({ kind }) => kind)).toEqual(kinds);
    const [first] = found;
    expect(first?.resource).toBe('stock');
    expect(first?.sentence).toMatch(says);
    const calls = first?.operations.map(({ process, operation, id }) => `${process} ${operation} ${id}`);
    expect(calls).toEqual(concerns);
  });

  it.each(keptHistories)('accepts $title', ({ history, expectations = [], idleMs = 0 }) => {
    const verdict = checkHistory(history.events, ...expectations);
    expect(verdict.violations).toEqual([]);
    expect(verdict.longestIdleMs).toBeGreaterThanOrEqual(idleMs);
    expect(verdict.operations).toBe(history.events.filter(({ type }) => type === 'invoke').length);
  });

  it.each(unjudgedHistories)('does not see $title', ({ history }) => {
    expect(checkHistory(history.events).violations).toEqual([]);
  });

  it('tells resources apart', () => {
    const one = new Planted().acquire('a', 'x', 1).events;
    const other = new Planted().acquire('b', 'x', 1).events.map((event) => ({ ...event, resource: 'other' }));
    const { violations: found, holds } = checkHistory([...one, ...other]);
    expect(found).toEqual([]);
    expect(holds).toBe(2);
  });

  it('judges 100 000 operations of which all fail at once, within a few seconds', () => {
    const history = new Planted();
    for (let index = 0; index < 50_000; index += 1) {
      history
        .acquire(`p${index % 8}`, `x${index}`, index / 1_000, index)
        .release(`p${index % 8}`, `x${index}`, 100);
    }
    const startedAt = performance.now();
    const { operations, violations: found } = checkHistory(history.events);
    expect(operations).toBe(100_000);
    expect(found).toHaveLength(49_999);
    expect(performance.now() - startedAt).toBeLessThan(20_000);
  });
});
