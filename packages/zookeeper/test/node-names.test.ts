import { expect, test } from 'vitest';
import {
  sharedNameOf,
  compareSequences,
  decodeName,
  encodeName,
  parseLockNode,
  lockNodePrefix,
} from '../src/node-names.ts';

const LAST = 2 ** 31 - 1;
const FIRST = -(2 ** 31);

test('sequence numbers keep their order where an int32 wraps', () => {
  const made = [LAST - 2, LAST - 1, LAST, FIRST, FIRST + 1, FIRST + 2];
  expect([...made].reverse().sort(compareSequences)).toEqual(made);
  expect(compareSequences(LAST, FIRST)).toBeLessThan(0);
  expect(compareSequences(FIRST, LAST)).toBeGreaterThan(0);
  expect(compareSequences(-1, 0)).toBeLessThan(0);
  expect(compareSequences(7, 7)).toBe(0);
});

test('the name of a node can be decoded, whatever the id and the sequence number look like', () => {
  for (const id of ['a', '-', '_-_', '0000000001', '-1234567890', 'x'.repeat(64)]) {
    for (const [digits, sequence] of [
      ['0000000000', 0],
      ['0000000012', 12],
      ['2147483647', LAST],
      ['-2147483648', FIRST],
      ['-1000000000', -1_000_000_000],
      // `%010d` counts the sign.
      ['-000000001', -1],
    ] as const) {
      const name = `${lockNodePrefix({ kind: 'exclusive' }, id)}${digits}`;
      expect(parseLockNode(name)).toEqual({ name, kind: 'x', acquisitionId: id, sequence });
    }
  }
});

test('names of foreign nodes are not decoded', () => {
  for (const name of ['', 'x', 'x.a', 'x.a.1', 'y.a.0000000001', 'x.a b.0000000001', '_c_1-lock-0000000001'])
    expect(parseLockNode(name)).toBeUndefined();
});

test('a downgraded node keeps its position in the queue', () => {
  const node = parseLockNode('x.id.-2147483648');
  expect(node && parseLockNode(sharedNameOf(node))).toMatchObject({
    kind: 's',
    sequence: FIRST,
    acquisitionId: 'id',
  });
});

test('every resource name is encoded as one legal path segment, distinct, and can be decoded', () => {
  const names = [
    '.',
    '..',
    '...',
    '.a',
    'a.b',
    '/',
    'a/b',
    '%2E',
    '%',
    '%2F',
    ' ',
    '\0',
    '\n',
    'é',
    'e\u0301',
  ];
  names.push('😀', '\u{10ffff}', 'zookeeper', '\ufffe', "!'()*~", 'é'.repeat(256), '\u0085', 'A', 'a');
  const segments = names.map(encodeName);
  expect(new Set(segments).size).toBe(names.length);
  for (const segment of segments) expect(segment).toMatch(/^:[\w.!'()*~%-]+$/);
  expect(segments.map(decodeName)).toEqual(names);
});

test('foreign path segments have no resource name', () => {
  for (const segment of ['%', '%zz', 'a b', '%2e', '.', 'a', ':%zz', ':a b', ':%2e'])
    expect(decodeName(segment)).toBeUndefined();
});
