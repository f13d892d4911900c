import type { LockMode } from '@locks/core/backend';
import { expect, test } from 'vitest';
import { contradict, Room } from '../src/room.ts';

const exclusive: LockMode = { kind: 'exclusive' };
const shared: LockMode = { kind: 'shared' };
const permit = (limit: number, weight = 1): LockMode => ({ kind: 'permit', limit, weight });

test('an empty room takes one exclusive, and then nothing', () => {
  const room = new Room();
  expect(room.take(exclusive)).toBe(true);
  expect(room.isFull).toBe(true);
  for (const mode of [exclusive, shared, permit(9)]) expect(room.take(mode)).toBe(false);
});

test('shares fit beside shares only', () => {
  const room = new Room('shared');
  expect(room.take(shared)).toBe(true);
  expect(room.take(exclusive)).toBe(false);
  expect(room.take(permit(9))).toBe(false);
  expect(new Room('exclusive').take(shared)).toBe(false);
  expect(new Room('permit', 1).take(shared)).toBe(false);
});

test('permits fit up to their limit, whatever was refused between', () => {
  const room = new Room('permit', 2);
  expect(room.take(permit(5, 4))).toBe(false);
  expect(room.take(permit(5, 2))).toBe(true);
  expect(room.take(permit(5, 2))).toBe(false);
  expect(room.take(permit(5))).toBe(true);
  expect(room.take(permit(5))).toBe(false);
  expect(new Room('shared').take(permit(5))).toBe(false);
  expect(new Room('exclusive').take(permit(5))).toBe(false);
});

test('a permit heavier than the limit fits nowhere', () => {
  expect(new Room().take(permit(2, 3))).toBe(false);
});

test.for([
  [exclusive, shared, false],
  [exclusive, exclusive, false],
  [permit(2), permit(2, 2), false],
  [permit(2), permit(3), true],
  [permit(1), exclusive, true],
  [shared, permit(1), true],
] as const)('%o and %o contradict each other: %s', ([one, other, expected]) => {
  expect(contradict(one, other)).toBe(expected);
  expect(contradict(other, one)).toBe(expected);
});
