import { describe, expect, test } from 'vitest';
import type { LockMode } from '../../src/backend/types.ts';
import { ELSEWHERE, labelOf, toldBy, waitId } from '../../src/deadlock/told-wait.ts';
import { checkLabel } from '../../src/names.ts';

const modes: LockMode[] = [
  { kind: 'exclusive' },
  { kind: 'shared' },
  { kind: 'permit', weight: 3, limit: 1_000_000_000 },
];

describe('the label of a wait', () => {
  test.each(modes)('tells the mode $kind and a name of every character', (mode) => {
    for (const name of ['q', 'a b', ' ', '100%', '%41', 'x\u0000\n\u0085y', '🔒', '1 x s q']) {
      const wait = { id: waitId(1_700_000_000_000, 'A'.repeat(20)), mode, name };
      const label = labelOf(wait) as string;
      expect(checkLabel(label, 'label')).toBe(label);
      expect(toldBy(label)).toEqual(wait);
    }
  });

  test('is absent where the name is too long for one', () => {
    const wait = { id: waitId(0, 'A'.repeat(20)), mode: modes[0] as LockMode };
    expect(labelOf({ ...wait, name: 'n'.repeat(200) })).toBeDefined();
    expect(labelOf({ ...wait, name: 'n'.repeat(300) })).toBeUndefined();
    expect(labelOf({ ...wait, name: '\n'.repeat(100) })).toBeUndefined();
  });

  test('tells nothing where something else wrote it', () => {
    for (const label of [
      undefined,
      '',
      'host:1',
      ELSEWHERE,
      '2 id x q',
      '1 id y q',
      '1 id x ',
      '1 id x %E0%A4%A',
    ])
      expect(toldBy(label)).toBeUndefined();
  });
});

test('of two waits the younger one has the greater id', () => {
  const ids = [0, 9, 35, 36, 1_700_000_000_000, 1_700_000_000_001].map((at) => waitId(at, 'z'));
  expect(ids.toSorted()).toEqual(ids);
  expect(waitId(5, 'a') < waitId(5, 'b')).toBe(true);
});
