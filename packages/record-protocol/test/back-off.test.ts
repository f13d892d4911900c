import { expect, it } from 'vitest';
import { pauseBefore } from '../src/back-off.ts';
import { type RowStep, RowWriter } from '../src/row-writer.ts';
import { callFor } from './fixture.ts';

const step = (enqueues: boolean) => ({ enqueues, call: callFor(60_000) }) as RowStep;

/** After many conflicts the pause of newcomers is at least a second. */
const crowded = { tries: 20, conflicts: 20, wasRefused: true };

function slowWriter(): RowWriter {
  const writer = new RowWriter('a');
  for (let writes = 0; writes < 3; writes += 1) writer.wrote(1_000, true, true);
  return writer;
}

it('a release ends the pause of the newcomers of its process', async () => {
  const writer = slowWriter();
  const startedAt = performance.now();
  const paused = pauseBefore(crowded, [step(true)], writer);
  writer.endPause?.();
  expect(await paused).toBe(true);
  expect(performance.now() - startedAt).toBeLessThan(100);
});

it('newcomers do not pause where a release of their process is already there', async () => {
  const writer = slowWriter();
  writer.pending.push(step(false));
  const startedAt = performance.now();
  expect(await pauseBefore(crowded, [step(true)], writer)).toBe(true);
  expect(performance.now() - startedAt).toBeLessThan(100);
});

it('else they pause', async () => {
  const startedAt = performance.now();
  expect(await pauseBefore(crowded, [step(true)], slowWriter())).toBe(true);
  expect(performance.now() - startedAt).toBeGreaterThan(100);
});
