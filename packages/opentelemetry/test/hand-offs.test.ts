import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { HandOffs } from '../src/hand-offs.ts';

const lock = { backend: 'store', name: 'a', acquisitionId: 'of-a' } as never;

/** What a busy machine does to a process between two of its steps. */
function standStill(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

function measured(): { handOffs: HandOffs; gaps: number[] } {
  const gaps: number[] = [];
  const handOffs = new HandOffs((gapMs) => gaps.push(gapMs));
  handOffs.waits(lock);
  return { handOffs, gaps };
}

test('a grant that comes with the answer to the release is a hand-off, however slowly the process runs', () => {
  const { handOffs, gaps } = measured();
  handOffs.released(lock, 1n, 2);
  standStill(5);
  handOffs.granted(lock, 1_000n);
  expect(gaps).toHaveLength(1);
  expect(gaps[0]).toBeGreaterThanOrEqual(7);
});

test('so is a grant that becomes known just before the release', () => {
  const { handOffs, gaps } = measured();
  handOffs.granted(lock, 1_000n);
  standStill(5);
  handOffs.released(lock, 1n, 2);
  expect(gaps).toHaveLength(1);
});

test('a later grant is one where it has the next token, since another process may have held otherwise', async () => {
  for (const [token, count] of [
    [2n, 1],
    [1_000n, 0],
  ] as const) {
    const { handOffs, gaps } = measured();
    handOffs.released(lock, 1n, 2);
    await setImmediate();
    handOffs.granted(lock, token);
    expect(gaps).toHaveLength(count);
  }
});
