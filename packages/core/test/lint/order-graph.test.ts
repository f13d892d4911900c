import { expect, onTestFinished, test, vi } from 'vitest';
import { type AskedLock, OrderGraph } from '../../src/lint/order-graph.ts';

const lock = (name: string): AskedLock => ({ name, backend: 'scripted', place: undefined });
const nameOf = (at: number): string => `account:${String(at).padStart(4, '0')}`;

/** Counts the maps that are read through: a search reads one for each class that it passes. */
function countVisits(): () => number {
  const read = vi.spyOn(Map.prototype, Symbol.iterator);
  onTestFinished(() => read.mockRestore());
  return () => read.mock.calls.length;
}

const LONG = 2_000;

test('orders of one direction are added without a search', () => {
  const graph = new OrderGraph((name) => name, 10_000);
  const visits = countVisits();
  // First pairs, then what joins them, from the end: much of the chain could be reached from each order that joins.
  for (const last of [LONG - 1, LONG - 2])
    for (let at = last; at > 0; at -= 2)
      expect(graph.add({ held: lock(nameOf(at)), asked: lock(nameOf(at + 1)) })).toBeUndefined();
  expect(visits()).toBeLessThan(LONG);
  const circle = graph.add({ held: lock(nameOf(LONG)), asked: lock(nameOf(1)) });
  expect(circle).toHaveLength(LONG);
});

test('beside orders of both directions, a lock that is always the first one needs no search', () => {
  const graph = new OrderGraph((name) => name, 10_000);
  graph.add({ held: lock('z'), asked: lock('y') });
  const visits = countVisits();
  // From the end, so that the whole chain so far could be reached from each order.
  for (let at = LONG - 1; at > 0; at -= 1)
    expect(graph.add({ held: lock(nameOf(at)), asked: lock(nameOf(at + 1)) })).toBeUndefined();
  expect(visits()).toBeLessThan(LONG);
  const circle = graph.add({ held: lock(nameOf(LONG)), asked: lock(nameOf(1)) });
  expect(circle?.map(({ held, asked }) => `${held.name} ${asked.name}`)).toEqual([
    `${nameOf(LONG)} ${nameOf(1)}`,
    ...Array.from({ length: LONG - 1 }, (_, at) => `${nameOf(at + 1)} ${nameOf(at + 2)}`),
  ]);
  expect(visits()).toBeLessThan(2 * LONG);
});

test('a search passes each class at most twice, however many ways lead to it', () => {
  const graph = new OrderGraph((name) => name, 10_000);
  graph.add({ held: lock('z'), asked: lock('y') });
  // Each of a hundred classes is taken before all later ones.
  for (let first = 0; first < 100; first += 1)
    for (let second = first + 1; second < 100; second += 1)
      graph.add({ held: lock(nameOf(first)), asked: lock(nameOf(second)) });
  graph.add({ held: lock('a'), asked: lock('b') });
  const visits = countVisits();
  expect(graph.add({ held: lock('b'), asked: lock(nameOf(0)) })).toBeUndefined();
  expect(visits()).toBeGreaterThan(0);
  expect(visits()).toBeLessThan(200);
});
