import type { Holder, ResourceState } from '@locks/core';
import { describe, expect, it } from 'vitest';
import { EndedHolds } from '../src/board/ended-holds.ts';

function holder(acquisitionId: string, expiresInMs?: number): Holder {
  const mode = { kind: 'exclusive' } as const;
  return expiresInMs === undefined ? { acquisitionId, mode } : { acquisitionId, mode, expiresInMs };
}

const held = (...holders: Holder[]): ResourceState[] => [{ name: 'stock', holders, waiters: [] }];

/** How the hold ended of which these times were left at looks a second apart. */
function endingAfter(...left: (number | undefined)[]): string | undefined {
  const ended = new EndedHolds();
  for (const [index, expiresInMs] of left.entries())
    ended.look(held(holder('a', expiresInMs)), index * 1_000);
  ended.look([], left.length * 1_000);
  return ended.list[0]?.ending;
}

describe('how a hold ended, seen from outside', () => {
  it.each([
    ['ran-out', 'its time went down to nothing', [3_000, 2_000, 1_000]],
    ['ended', 'time was left at the last look', [3_000, 2_000, 1_100]],
    ['ended', 'it was renewed', [3_000, 2_000, 2_900]],
    ['ended', 'its ttl is shorter than the time between two looks', [900, 850, 900]],
    ['ended', 'it has no ttl', [undefined, undefined]],
  ])('%s: %s', (ending, _why, left) => {
    expect(endingAfter(...left)).toBe(ending);
  });

  it('ran-out: its time went down to nothing while a slow store answered', () => {
    const ended = new EndedHolds();
    ended.look(held(holder('a', 3_000)), 0, 10);
    ended.look(held(holder('a', 1_200)), 1_800, 1_810);
    ended.look([], 2_800, 3_100);
    expect(ended.list).toMatchObject([{ ending: 'ran-out', at: 3_100 }]);
  });

  it('keeps the last fifty, the newest first, and each once', () => {
    const ended = new EndedHolds();
    for (let id = 0; id < 60; id += 1) {
      ended.look(held(holder(String(id), 30_000)), id);
    }
    ended.look([], 60);
    ended.look([], 61);
    const ids = ended.list.map((one) => one.holder.acquisitionId);
    expect(ids).toEqual(Array.from({ length: 50 }, (_, index) => String(59 - index)));
  });
});
