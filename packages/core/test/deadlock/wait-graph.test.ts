import { describe, expect, test } from 'vitest';
import type { LockMode } from '../../src/backend/types.ts';
import {
  circleToEnd,
  deadlocked,
  type HoldNode,
  type AwaitedLock,
  type WaitNode,
} from '../../src/deadlock/wait-graph.ts';

const X: LockMode = { kind: 'exclusive' };
const S: LockMode = { kind: 'shared' };
const permit = (limit: number, weight = 1): LockMode => ({ kind: 'permit', limit, weight });

type Want = readonly [name: string, mode: LockMode];

/** One code: what it holds, and what its branches wait for. */
interface Code {
  readonly holds: readonly Want[];
  readonly wants: readonly Want[];
}

/** The waits of several codes; the later ones are younger. */
function graphOf(codes: readonly Code[]): WaitNode[] {
  const locks = new Map<string, AwaitedLock>();
  const lockOf = (name: string): AwaitedLock => {
    const lock = locks.get(name) ?? { name, holders: [] };
    locks.set(name, lock);
    return lock;
  };
  return codes.flatMap(({ holds, wants }, index) => {
    const waits = wants.map(([name, mode], branch) => ({
      id: `${index}.${branch}`,
      mode,
      lock: lockOf(name),
    }));
    for (const [name, mode] of holds) {
      const lock = lockOf(name);
      const hold: HoldNode = { lock, mode, label: `code ${index}`, waits };
      lock.holders.push(hold);
    }
    return waits;
  });
}

/** The ids of the waits that give up. */
function victimsOf(waits: readonly WaitNode[]): string[] {
  const left = deadlocked(waits);
  return waits.filter((wait) => left.has(wait) && circleToEnd(wait, left) !== undefined).map(({ id }) => id);
}

const exclusive = (hold: string, want: string): Code => ({ holds: [[hold, X]], wants: [[want, X]] });

describe('a circle', () => {
  test.each([2, 3, 4])('of %i is ended by its youngest wait, and tells who waits for whom', (count) => {
    const names = ['p', 'q', 'r', 's'].slice(0, count);
    const waits = graphOf(names.map((name, index) => exclusive(name, names[(index + 1) % count] as string)));
    expect(victimsOf(waits)).toEqual([`${count - 1}.0`]);
    const circle = circleToEnd(waits.at(-1) as WaitNode, deadlocked(waits));
    expect(circle?.map(({ name }) => name)).toEqual([names.at(-1), ...names.slice(0, -1)]);
    expect(circle?.map(({ waitsFor }) => waitsFor)).toEqual(names);
    expect(circle?.map(({ label }) => label)).toEqual(
      circle?.map(({ name }) => `code ${names.indexOf(name)}`),
    );
  });

  test('has no victim outside of it: neither behind it, nor a chain before a hold that ends', () => {
    expect(victimsOf(graphOf([exclusive('p', 'q'), exclusive('q', 'p'), exclusive('own', 'p')]))).toEqual([
      '1.0',
    ]);
    expect(
      victimsOf(graphOf([exclusive('p', 'q'), exclusive('q', 'r'), { holds: [['r', X]], wants: [] }])),
    ).toEqual([]);
  });

  test('beside another one has a victim of its own', () => {
    const waits = graphOf([
      exclusive('p', 'q'),
      exclusive('a', 'b'),
      exclusive('b', 'a'),
      exclusive('q', 'p'),
    ]);
    expect(victimsOf(waits)).toEqual(['2.0', '3.0']);
  });

  test('of readers is one as soon as one of them cannot end, and none between readers', () => {
    const reader: Code = { holds: [['p', S]], wants: [['q', X]] };
    const free: Code = { holds: [['p', S]], wants: [] };
    expect(victimsOf(graphOf([free, reader, exclusive('q', 'p')]))).toEqual(['2.0']);
    expect(victimsOf(graphOf([reader, { holds: [['q', X]], wants: [['p', S]] }]))).toEqual([]);
  });

  test('over permits is one only where none of them can be given back', () => {
    const holder: Code = { holds: [['slots', permit(2)]], wants: [['q', X]] };
    const waiter: Code = { holds: [['q', X]], wants: [['slots', permit(2)]] };
    expect(victimsOf(graphOf([holder, holder, waiter]))).toEqual(['2.0']);
    expect(victimsOf(graphOf([waiter, holder, holder]))).toEqual(['2.0']);
    expect(victimsOf(graphOf([holder, { holds: [['slots', permit(2)]], wants: [] }, waiter]))).toEqual([]);
    const both: Code = { holds: [['q', X]], wants: [['slots', permit(2, 2)]] };
    expect(victimsOf(graphOf([holder, { holds: [['slots', permit(2)]], wants: [] }, both]))).toEqual(['2.0']);
  });

  test('over one of several branches is one', () => {
    const branches: Code = {
      holds: [['p', X]],
      wants: [
        ['free', X],
        ['q', X],
      ],
    };
    expect(victimsOf(graphOf([branches, exclusive('q', 'p')]))).toEqual(['1.0']);
  });
});

/** Every way in which up to three codes hold one of three locks and wait for another, in the modes of the lock. */
function* everyGraph(): Generator<readonly Code[]> {
  const modes = [X, S];
  const choices: Code[] = [];
  for (const hold of ['p', 'q', 'r'])
    for (const want of ['p', 'q', 'r'])
      for (const held of modes)
        for (const wanted of modes)
          if (hold !== want) choices.push({ holds: [[hold, held]], wants: [[want, wanted]] });
  for (const a of choices)
    for (const b of choices)
      for (const c of choices) {
        const codes = [a, b, c];
        const canHold = ['p', 'q', 'r'].every((name) => {
          const held = codes.flatMap(({ holds }) => holds).filter(([one]) => one === name);
          return held.length <= 1 || held.every(([, mode]) => mode.kind === 'shared');
        });
        if (canHold) yield codes;
      }
}

/** Whether all codes end where those that can go on do: the truth, found by running them. */
function allEnd(codes: readonly Code[]): boolean {
  let running = [...codes];
  for (let before = Number.POSITIVE_INFINITY; running.length < before; ) {
    before = running.length;
    running = running.filter(({ wants: [want], holds: own }) => {
      const [name, mode] = want as Want;
      const others = running
        .flatMap(({ holds }) => (holds === own ? [] : holds))
        .filter(([one]) => one === name);
      return !others.every(([, held]) => held.kind === 'shared' && mode.kind === 'shared');
    });
  }
  return running.length === 0;
}

test('every deadlock of three codes ends with victims alone, and nobody else is one', () => {
  let deadlocks = 0;
  for (const codes of everyGraph()) {
    let left = codes;
    let victims = victimsOf(graphOf(left));
    if (allEnd(codes)) {
      expect(victims).toEqual([]);
      continue;
    }
    deadlocks += 1;
    // Each round ends one wait of each circle, whose code then releases what it holds.
    while (victims.length > 0) {
      const gone = new Set(victims.map((id) => Number.parseInt(id, 10)));
      left = left.filter((_, index) => !gone.has(index));
      victims = victimsOf(graphOf(left));
    }
    expect(left.length).toBeGreaterThan(0);
    expect(allEnd(left)).toBe(true);
  }
  expect(deadlocks).toBeGreaterThan(100);
});
