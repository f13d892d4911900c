import type { LockMode } from '@locks/core/backend';
import type { ResourceState } from '@locks/core';
import { describe, expect, test } from 'vitest';
import { type DrawnLock, waitPicture } from '../src/board/wait-picture.ts';

const held = (name: string, ...ids: string[]): ResourceState => heldIn({ kind: 'exclusive' }, name, ...ids);
const heldIn = (mode: LockMode, name: string, ...ids: string[]): ResourceState => ({
  name,
  holders: ids.map((acquisitionId) => ({
    acquisitionId,
    label: `holder ${acquisitionId}`,
    mode,
  })),
  waiters: [],
});
/** A hold whose code waits for a lock, in a mode as labels have it. */
const told = (id: string, name: string, mode = 'x'): ResourceState => ({
  name: `@locks/waits/${id}`,
  holders: [
    { acquisitionId: `of ${id}`, label: `1 000000000.${id} ${mode} ${name}`, mode: { kind: 'shared' } },
  ],
  waiters: [],
});

/** `a > b*`: the holder of `a` waits for `b`, in a circle. */
const lines = (picture: readonly DrawnLock[]): string[] =>
  picture.map(({ name, waitsFor }) =>
    [name, ...waitsFor.map((to) => `${to.name}${to.isInCircle ? '*' : ''}`)].join(' > '),
  );

describe('the picture of who waits for whom', () => {
  test('is empty where no holder waits', () => {
    expect(waitPicture([held('a', '1'), held('b', '2')], [])).toEqual([]);
    expect(waitPicture([held('a', '1')], [told('ended', 'a')])).toEqual([]);
  });

  test('has each chain from its beginning, with the holders of its end', () => {
    const states = [held('a', '1'), held('b', '2'), held('c', '3'), held('free of waits', '4')];
    const picture = waitPicture(states, [told('3', 'b'), told('2', 'a')]);
    expect(lines(picture)).toEqual(['c > b', 'b > a', 'a']);
    expect(picture.at(-1)?.holders).toEqual([{ acquisitionId: '1', label: 'holder 1' }]);
  });

  test('tells a circle from the waits that lead to it', () => {
    const states = [held('a', '1'), held('b', '2'), held('c', '3')];
    const picture = waitPicture(states, [told('1', 'b'), told('2', 'a'), told('3', 'a')]);
    expect(lines(picture)).toEqual(['c > a', 'a > b*', 'b > a*']);
  });

  test('has no circle where a way out is open', () => {
    const permit = { kind: 'permit', limit: 2, weight: 1 } as const;
    const lock = held('r', 'd');
    const [fromRoom, fromLock] = [told('b', 'r'), told('d', 'room', 'p1/2')];
    const works = [heldIn(permit, 'room', 'a', 'b'), lock];
    expect(lines(waitPicture(works, [fromRoom, fromLock]))).toEqual(['room > r', 'r > room']);
    // A permit is left: the wait for it is about to end.
    expect(lines(waitPicture([heldIn(permit, 'room', 'b'), lock], [fromRoom, fromLock]))).toEqual([
      'room > r',
      'r > room',
    ]);
    const closed = waitPicture(works, [fromRoom, fromLock, told('a', 'r')]);
    expect(lines(closed)).toEqual(['room > r*', 'r > room*']);
    // A reader behind a reader waits for a writer between them.
    const shared = { kind: 'shared' } as const;
    const readers = [heldIn(shared, 'p', '1'), heldIn(shared, 'q', '2')];
    expect(lines(waitPicture(readers, [told('1', 'q', 's'), told('2', 'p', 's')]))).toEqual([
      'p > q',
      'q > p',
    ]);
    expect(lines(waitPicture(readers, [told('1', 'q'), told('2', 'p')]))).toEqual(['p > q*', 'q > p*']);
  });

  test('has a lock that is not listed, without holders, and each lock once', () => {
    const states = [held('slots', '1', '2')];
    expect(lines(waitPicture(states, [told('1', 'x'), told('2', 'x')]))).toEqual(['slots > x', 'x']);
    expect(waitPicture(states, [told('1', 'x')]).at(-1)).toEqual({ name: 'x', holders: [], waitsFor: [] });
  });
});
