import { Buffer } from 'node:buffer';
import { expect, test } from 'vitest';
import { VersionedRecords } from '../../src/record/versioned-records.ts';

function recordsAt() {
  const time = { now: 0 };
  const records = new VersionedRecords(
    () => time.now,
    (count) => count,
  );
  const write = (text: string | undefined, ifVersion?: number) =>
    records.write({
      key: 'k',
      value: text === undefined ? text : Buffer.from(text),
      ifVersion,
      isIdle: false,
    });
  const textAt = (at: number): string | undefined => {
    const value = records.readAt('k', at)?.value;
    return value && Buffer.from(value).toString();
  };
  return { time, records, write, textAt };
}

test('a record is written over the version that it has, and over no other', () => {
  const { records, write } = recordsAt();
  expect(write('a')).toEqual({ version: 1 });
  expect(write('b')).toBeUndefined();
  expect(write('b', 2)).toBeUndefined();
  expect(write('b', 1)).toEqual({ version: 2 });
  expect(records.read('k')?.version).toBe(2);
});

test('a version never comes back, neither after a delete nor after a loss of data', () => {
  const { time, records, write } = recordsAt();
  write('a');
  expect(write(undefined, 1)).toEqual({ version: 2 });
  expect(records.keys()).toEqual([]);
  expect(write('b')).toEqual({ version: 3 });
  time.now = 5;
  write('c', 3);
  expect(records.loseSince(5)).toEqual(['k']);
  expect(records.read('k')?.version).toBe(3);
  expect(write('d', 3)).toEqual({ version: 5 });
});

test('a record of before is one that was there at that time', () => {
  const { time, write, textAt } = recordsAt();
  time.now = 10;
  write('a');
  time.now = 20;
  write(undefined, 1);
  time.now = 30;
  write('b');
  const texts = [9, 10, 19, 20, 29, 30, 31].map(textAt);
  expect(texts).toEqual([undefined, 'a', 'a', undefined, undefined, 'b', 'b']);
});

test('states that are of use to nobody are forgotten, and the present one is not', () => {
  const { time, write, textAt, records } = recordsAt();
  for (const [index, now] of [0, 1_000, 5_000, 9_000].entries()) {
    time.now = now;
    write(String(now), index === 0 ? undefined : index);
  }
  expect(textAt(6_000)).toBe('5000');
  expect(records.read('k')?.version).toBe(4);
  time.now = 60_000;
  expect(textAt(57_000)).toBe('9000');
});
