import type { ResourceState } from '@locks/core';
import { describe, expect, test } from 'vitest';
import { type DrawnLock, waitPicture } from '../src/board/wait-picture.ts';

const held = (name: string, ...ids: string[]): ResourceState => ({
  name,
  holders: ids.map((acquisitionId) => ({
    acquisitionId,
    label: `holder ${acquisitionId}`,
    mode: { kind: 'exclusive' },
  })),
  waiters: [],
});
const told = (id: string, name: string): ResourceState => ({
  name: `@locks/waits/${id}`,
  holders: [{ acquisitionId: `of ${id}`, label: `1 000000000.z x ${name}`, mode: { kind: 'shared' } }],
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
    expect(waitPicture([held('a', '1')], [told('a hold that has ended', 'a')])).toEqual([]);
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

  test('has a lock that is not listed, without holders, and each lock once', () => {
    const states = [held('slots', '1', '2')];
    expect(lines(waitPicture(states, [told('1', 'x'), told('2', 'x')]))).toEqual(['slots > x', 'x']);
    expect(waitPicture(states, [told('1', 'x')]).at(-1)).toEqual({ name: 'x', holders: [], waitsFor: [] });
  });
});
