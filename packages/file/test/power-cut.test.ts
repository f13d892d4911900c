import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { SlotEntry } from '@locks/core/backend';
import { describe, expect, it } from 'vitest';
import { fileSlots } from '../src/index.ts';
import { plant, recorded, statesAfter, treeOf } from './dropping-disk.ts';
import { temporaryFolder } from './fixture.ts';

const entry = (token: bigint): SlotEntry => ({
  slot: `2030-01-0${token}`,
  state: 'done',
  token,
  label: 'machine-1',
  at: 1,
});

describe('a power cut on a disk that drops what was not synced', () => {
  it.each([
    ['the first slot of a folder that nobody had made', undefined, (): void => undefined],
    [
      'the first slot of a folder that the locks have just made',
      undefined,
      (folder: string): void => void mkdirSync(folder, { recursive: true }),
    ],
    ['the next slot', 1n, (): void => undefined],
  ])(
    'leaves a slot as it was or as it was written, and a slot that was answered stays: %s',
    async (_, former, make) => {
      const root = temporaryFolder();
      const within = (at: string) => join(at, 'shop', 'locks');
      if (former !== undefined) await fileSlots(within(root)).write('job', entry(former));
      const before = treeOf(root);
      const steps = await recorded(async () => {
        make(within(root));
        expect(await fileSlots(within(root)).write('job', entry(2n))).toBe(true);
      });
      let states = 0;
      for (let done = 0; done <= steps.length; done += 1) {
        const allowed = done === steps.length ? [2n] : [former, 2n];
        for (const tree of statesAfter(before, steps.slice(0, done))) {
          states += 1;
          const at = join(temporaryFolder(), `${states}`);
          plant(tree, root, at);
          const slots = fileSlots(within(at));
          const found = (await slots.read('job')).entry;
          expect(
            allowed,
            `after ${done} of ${JSON.stringify(steps)}: ${JSON.stringify([...tree])}`,
          ).toContain(found?.token);
          if (found !== undefined) expect(found).toEqual(entry(found.token));
          expect(await slots.write('job', entry(3n))).toBe(true);
          expect((await slots.read('job')).entry).toEqual(entry(3n));
        }
      }
      expect(states).toBeGreaterThan(20);
    },
  );
});
