import { expect, test } from 'vitest';
import { Line } from '../src/line.ts';

function blockers(line: Line): (string | undefined)[] {
  return line.seats.map((seat) => line.blockerOf(seat)?.name);
}

test('a writer waits for whoever is right before it, a reader for the nearest writer before it', () => {
  const names = ['s.a.0000000001', 's.b.0000000002', 'x.c.0000000003', 's.d.0000000004', 's.e.0000000005'];
  const line = new Line([...names].reverse());
  expect(line.seats.map(({ name }) => name)).toEqual(names);
  expect(blockers(line)).toEqual([undefined, undefined, names[1], names[2], names[2]]);
  expect(line.holders.map(({ acquisitionId }) => acquisitionId)).toEqual(['a', 'b']);
  expect(line.waiters.map(({ acquisitionId }) => acquisitionId)).toEqual(['c', 'd', 'e']);
});

test('the line keeps its order where sequence numbers wrap', () => {
  const line = new Line(['x.late.-2147483648', 'x.first.2147483646', 'x.second.2147483647']);
  expect(line.seats.map(({ acquisitionId }) => acquisitionId)).toEqual(['first', 'second', 'late']);
  expect(line.holders).toHaveLength(1);
});

test('nodes of others neither hold nor wait', () => {
  expect(new Line(['config', 'lock-0000000000']).seats).toEqual([]);
});
