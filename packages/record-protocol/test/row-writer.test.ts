import { expect, test } from 'vitest';
import { RowWriter } from '../src/row-writer.ts';

/** How long a writer takes its next write to last after these. */
function expected(...writesMs: number[]): number {
  const writer = new RowWriter('a');
  for (const ms of writesMs) writer.wrote(ms, true, false);
  return writer.writeMs;
}

test('one slow write does not lengthen the pauses of newcomers, which would let another process go ahead', () => {
  expect(expected(2, 3, 90)).toBe(3);
  expect(expected(2, 90)).toBe(2);
  expect(expected(2, 90, 3, 2)).toBe(3);
});

test('lost answers, after which a write is repeated, do not make the next pauses as long', () => {
  expect(expected(5_000)).toBe(100);
  expect(expected(2, 5_000, 4_000)).toBe(100);
});

test('the pauses follow a store that has become slow, or fast again', () => {
  expect(expected(40)).toBe(40);
  expect(expected(2, 2, 40, 41)).toBe(40);
  expect(expected(40, 40, 2, 3)).toBe(3);
});
