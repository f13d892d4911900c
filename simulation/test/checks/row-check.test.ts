import type { HoldRecord, WaiterRecord } from '@locks/core/rules';
import { describe, expect, it } from 'vitest';
import { QueueCheck } from '../../src/checks/queue-check.ts';
import { RowCheck, type RowWriteSeen, type SeenRow } from '../../src/checks/row-check.ts';
import { World } from '../../src/kernel/world.ts';

const mode = { kind: 'exclusive' } as const;
const NOW = 1_000;

function hold(id: string, until: number, token = 7): HoldRecord {
  const own = { id, mode, label: id, since: 0 };
  return { ...own, token, until, span: undefined, stolen: false };
}

function waiter(id: string, client: string): WaiterRecord {
  return { id, mode, label: id, client, ttl: 100, since: 0 };
}

function row(holds: readonly HoldRecord[], waiters: readonly WaiterRecord[] = []): SeenRow {
  const freeAt = Math.max(0, ...holds.map(({ until = 0 }) => until));
  return { holds, waiters, saysWaiting: waiters.length > 0, freeAt };
}

/** The clauses that a write breaks. */
function judged(write: Partial<RowWriteSeen>, hasOperator = false, lives = true): string[] {
  const world = new World(1, false);
  const check = new RowCheck(world, 'r0', hasOperator, () => lives, 300);
  const nothing = row([]);
  check.written({ before: nothing, after: nothing, isTake: false, writer: 'one', now: NOW, ...write });
  return world.violations.map(({ clause }) => clause);
}

describe('a write of a row', () => {
  const waiting = row([hold('a', 900)], [waiter('b', 'two')]);

  it('may take what is free, renew what has not ended, and serve who waits', () => {
    expect(judged({ after: row([hold('a', 1_100)]), isTake: true })).toEqual([]);
    expect(judged({ before: row([hold('a', 1_001)]), after: row([hold('a', 1_200)]) })).toEqual([]);
    expect(judged({ before: waiting, after: row([hold('b', 1_200, 8)]) })).toEqual([]);
  });

  it('takes nothing in one statement past those who wait', () => {
    expect(
      judged({ before: waiting, after: row([hold('c', 1_100, 8)], waiting.waiters), isTake: true }),
    ).toEqual(['§7.1']);
  });

  it('says in its columns that somebody waits, and when the last hold ends', () => {
    const after = row([hold('a', 1_100)], [waiter('b', 'two')]);
    expect(judged({ after })).toEqual([]);
    expect(judged({ after: { ...after, saysWaiting: false } })).toEqual(['§7.1']);
    expect(judged({ after: { ...after, freeAt: 1_099 } })).toEqual(['§11.1']);
  });

  it('brings no hold back that has ended, unless it is granted anew', () => {
    const before = row([hold('a', NOW)]);
    expect(judged({ before, after: row([hold('a', 1_100)]) })).toEqual(['§1.5']);
    expect(judged({ before, after: row([hold('a', 1_100, 8)]) })).toEqual([]);
  });

  it('passes over a head that lives once it has left what is free for long enough, and not before', () => {
    const passed = (at: number, between: readonly WaiterRecord[] = []): string[] => {
      const world = new World(1, false);
      const check = new RowCheck(world, 'r0', false, () => true, 300);
      const head = waiter('b', 'two');
      const rows = [row([hold('a', 500)], [head]), row([], [head, ...between])];
      const write = (before: SeenRow, after: SeenRow, now: number) =>
        check.written({ before, after, isTake: false, writer: 'one', now });
      write(row([]), rows[0] as SeenRow, 100);
      if (between.length > 0) write(rows[0] as SeenRow, rows[1] as SeenRow, 600);
      write(rows[between.length > 0 ? 1 : 0] as SeenRow, row([hold('c', 2_000, 8)]), at);
      return world.violations.map(({ clause }) => clause);
    };
    expect(passed(799)).toEqual(['§7.1']);
    expect(passed(800)).toEqual([]);
    expect(passed(799, [waiter('c', 'one')])).toEqual(['§7.1']);
    expect(passed(800, [waiter('c', 'one')])).toEqual([]);
  });

  it('may end a hold by force, and queue its waiter again behind another', () => {
    const judgedQueue = (hasOperator: boolean): string[] => {
      const world = new World(1, false);
      const check = new QueueCheck(world, 'r0', { isCombined: true, hasOperator });
      const [b, c] = [waiter('b', 'two'), waiter('c', 'two')];
      check.stepTaken([hold('a', 1_100, 1)], [b], []);
      check.stepTaken([hold('a', 1_100, 1)], [b, c], []);
      // One write: a leaves, b is granted the lock, loses it by force, and comes again.
      check.stepTaken([hold('c', 1_200, 3)], [{ ...b, since: 1_050 }], []);
      return world.violations.map(({ clause }) => clause);
    };
    expect(judgedQueue(true)).toEqual([]);
    expect(judgedQueue(false)).toEqual(['§7.1']);
  });

  it('keeps the places of other processes that live', () => {
    const after = row([hold('c', 1_100, 8)]);
    expect(judged({ before: waiting, after })).toEqual(['§7.1']);
    expect(judged({ before: waiting, after, writer: 'two' })).toEqual([]);
    expect(judged({ before: waiting, after }, false, false)).toEqual([]);
    expect(judged({ before: waiting, after }, true)).toEqual([]);
  });
});
