import { expect, test } from 'vitest';
import { EventQueue } from '../../src/kernel/event-queue.ts';
import { SeededRandom } from '../../src/kernel/seeded-random.ts';

test('events come in the order of their times, and those of one moment in the order in which they were added', () => {
  const random = new SeededRandom(7);
  const queue = new EventQueue();
  const expected: { at: number; number: number }[] = [];
  const happened: number[] = [];
  for (let number = 0; number < 2_000; number += 1) {
    const at = random.between(0, 200);
    expected.push({ at, number });
    queue.add(at, () => happened.push(number));
  }
  for (let event = queue.take(); event !== undefined; event = queue.take()) event.happen();
  expected.sort((a, b) => a.at - b.at || a.number - b.number);
  expect(happened).toEqual(expected.map(({ number }) => number));
});

test('a cancelled event does not happen', () => {
  const queue = new EventQueue();
  const first = queue.add(1, () => {});
  const second = queue.add(2, () => {});
  first.isCancelled = true;
  expect(queue.take()).toBe(second);
  expect(queue.take()).toBeUndefined();
});

test('a seed gives the same numbers each time, and forks of it give others', () => {
  const numbers = (random: SeededRandom) => Array.from({ length: 5 }, () => random.word());
  expect(numbers(new SeededRandom(42))).toEqual(numbers(new SeededRandom(42)));
  expect(numbers(new SeededRandom(42))).not.toEqual(numbers(new SeededRandom(43)));
  expect(numbers(new SeededRandom(42).fork(1))).toEqual(numbers(new SeededRandom(42).fork(1)));
  expect(numbers(new SeededRandom(42).fork(1))).not.toEqual(numbers(new SeededRandom(42).fork(2)));
});
