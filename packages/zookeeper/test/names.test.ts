import { expect, test } from 'vitest';
import { asShared, compareSequences, decodeName, encodeName, parseSeat, seatPrefix } from '../src/names.ts';

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

test('the name of a node is read back, whatever the id looks like and whatever the server appends', () => {
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
      const name = `${seatPrefix({ kind: 'exclusive' }, id)}${digits}`;
      expect(parseSeat(name)).toEqual({ name, seat: 'x', acquisitionId: id, sequence });
    }
  }
});

test('nodes of others are none of ours', () => {
  for (const name of ['', 'x', 'x.a', 'x.a.1', 'y.a.0000000001', 'x.a b.0000000001', '_c_1-lock-0000000001'])
    expect(parseSeat(name)).toBeUndefined();
});

test('a downgraded node keeps its place in line', () => {
  const seat = parseSeat('x.id.-2147483648');
  expect(seat && parseSeat(asShared(seat))).toMatchObject({
    seat: 's',
    sequence: FIRST,
    acquisitionId: 'id',
  });
});

test('every name is one legal segment of a path, distinct, and given back', () => {
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
  for (const segment of segments) expect(segment).toMatch(/^(?!\.)[\w.!'()*~%-]+$/);
  expect(segments.map(decodeName)).toEqual(names);
});

test('segments that nobody of us wrote have no name', () => {
  for (const segment of ['%', '%zz', 'a b', '%2e', '.']) expect(decodeName(segment)).toBeUndefined();
});
