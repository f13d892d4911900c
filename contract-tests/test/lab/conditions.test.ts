import { statfsSync } from 'node:fs';
import { startRedis, underConditions } from '@locks/test-servers';
import { expect, it } from 'vitest';
import { makeServerClock } from '../../src/lab/conditions/server-clock.ts';
import { makeSmallDisk } from '../../src/lab/conditions/small-disk.ts';

const clock = await makeServerClock();
const disk = await makeSmallDisk(8);

async function secondsOf(redis: { command(...args: ['TIME']): Promise<unknown> }): Promise<number> {
  const [seconds] = (await redis.command('TIME')) as [string];
  return Number(seconds);
}

it.skipIf(clock === undefined)(
  'sets the wall clock of a server forward and back, also after a restart',
  async () => {
    await using redis = await underConditions(clock?.conditions ?? {}, () => startRedis());
    await using other = await startRedis();
    expect(Math.abs((await secondsOf(redis)) - Date.now() / 1_000)).toBeLessThan(10);
    clock?.moveBy(3_600_000);
    expect((await secondsOf(redis)) - Date.now() / 1_000).toBeGreaterThan(3_590);
    await redis.restart();
    expect((await secondsOf(redis)) - Date.now() / 1_000).toBeGreaterThan(3_590);
    expect(Math.abs((await secondsOf(other)) - Date.now() / 1_000)).toBeLessThan(10);
    clock?.moveBy(-7_200_000);
    expect((await secondsOf(redis)) - Date.now() / 1_000).toBeLessThan(-3_590);
  },
);

it.skipIf(disk === undefined)('fills the disk of a server, and gives the space back', async () => {
  if (disk === undefined) return;
  await using small = disk;
  const start = () => startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
  await using redis = await underConditions(small.conditions, start);
  const free = () => statfsSync(redis.dir).bavail;
  expect(await redis.command('SET', 'a', 1)).toBe('OK');
  small.fill();
  expect(free()).toBe(0);
  await small.free();
  expect(free()).toBeGreaterThan(0);
});
