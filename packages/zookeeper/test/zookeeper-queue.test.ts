import { expect, test } from 'vitest';
import { ZookeeperQueue } from '../src/zookeeper-queue.ts';

function blockers(queue: ZookeeperQueue): (string | undefined)[] {
  return queue.nodes.map((node) => queue.blockerOf(node)?.name);
}

test('a writer waits for the entry right ahead of it, a reader for the nearest writer ahead', () => {
  const names = ['s.a.0000000001', 's.b.0000000002', 'x.c.0000000003', 's.d.0000000004', 's.e.0000000005'];
  const queue = new ZookeeperQueue([...names].reverse());
  expect(queue.nodes.map(({ name }) => name)).toEqual(names);
  expect(blockers(queue)).toEqual([undefined, undefined, names[1], names[2], names[2]]);
  expect(queue.holders.map(({ acquisitionId }) => acquisitionId)).toEqual(['a', 'b']);
  expect(queue.waiters.map(({ acquisitionId }) => acquisitionId)).toEqual(['c', 'd', 'e']);
});

test('the queue keeps its order where sequence numbers wrap', () => {
  const queue = new ZookeeperQueue(['x.late.-2147483648', 'x.first.2147483646', 'x.second.2147483647']);
  expect(queue.nodes.map(({ acquisitionId }) => acquisitionId)).toEqual(['first', 'second', 'late']);
  expect(queue.holders).toHaveLength(1);
});

test('foreign nodes neither hold nor wait', () => {
  expect(new ZookeeperQueue(['config', 'lock-0000000000']).nodes).toEqual([]);
});
