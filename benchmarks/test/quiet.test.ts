import { expect, it } from 'vitest';
import { untilQuiet } from '../src/measure/quiet.ts';

it('waits until the load is low, and says so once', async () => {
  const loads = [2, 1, 0.31, 0.29];
  const said: string[] = [];
  const loadNow = (): number => loads.shift() ?? 9;
  expect(await untilQuiet((text) => said.push(text), { loadNow, lookMs: 1 })).toBe(true);
  expect(loads).toEqual([]);
  expect(said).toHaveLength(1);
});

it('gives up where the machine stays busy, and measures at once on a quiet one', async () => {
  const busy = { loadNow: () => 1, lookMs: 1, limitMs: 20 };
  expect(await untilQuiet(() => {}, busy)).toBe(false);
  const said: string[] = [];
  expect(await untilQuiet((text) => said.push(text), { loadNow: () => 0.1, limitMs: 0 })).toBe(true);
  expect(said).toEqual([]);
});
