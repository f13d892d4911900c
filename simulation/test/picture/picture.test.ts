import { expect, test } from 'vitest';
import { pictureOf } from '../../src/picture/picture.ts';
import { LockCode } from '../../src/process/lock-code.ts';
import { Simulation } from '../../src/simulation.ts';
import { drawPlan } from '../../src/workload/draw-plan.ts';

test('a picture has a lane for each process and store, and a row for each event', async () => {
  const plan = drawPlan('quorum', 3);
  const { timeline, drawing } = await new Simulation(await LockCode.load('quorum'), plan, true).run();
  if (drawing === undefined) throw new Error('no drawing was kept');
  const picture = pictureOf('quorum, seed 3', timeline, drawing);
  const lanes = [...picture.matchAll(/class="name"[^>]*>([^<]*)</g)].map(([, name]) => name);
  expect(lanes).toEqual(expect.arrayContaining(['store0', 'store1', 'store2', 'p0']));
  expect(picture.match(/class="time"/g)).toHaveLength(timeline.length);
  expect(picture.match(/class="message"/g)).toHaveLength(drawing.messages.length);
  expect(drawing.messages.length).toBeGreaterThan(0);
  expect(drawing.spans.some(({ kind }) => kind === 'hold')).toBe(true);
});
