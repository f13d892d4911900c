import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { figure, later, lossOf, untilWaiting } from '../src/fault-lab/observe.ts';
import Lab from './lab.ts';

const SLACK_MS = 1_000;

describe.concurrent('how long a free lock stays idle', { timeout: 30_000 }, () => {
  it('after a hold ran out: a few milliseconds, also when nobody has checked for a while', async () => {
    await using lab = new Lab();
    const server = await lab.server();
    const [one, two] = [await lab.locks(server), await lab.locks(server)];
    // By its own clock the holder loses it a little before the server ends it.
    const lease = await one.lock('a').acquire({ ttlMs: 4_000, renewal: 'manual' });
    const lost = lossOf(lease);
    const entered = later(two.lock('a').acquire());
    const { at } = await lost;
    const next = await entered;
    const gap = performance.now() - at;
    figure('after the loss was reported to the holder (ttl 4000, 42 ms before the server ends it)', gap);
    expect(gap).toBeLessThan(SLACK_MS);
    await next.release();
  });

  it('after a release in another process: one check, quick while turns change, slow after a long hold', async () => {
    await using lab = new Lab();
    const server = await lab.server();
    const [one, two] = [await lab.locks(server), await lab.locks(server)];
    const quick: number[] = [];
    for (let round = 0; round < 12; round += 1) {
      const [from, to] = round % 2 === 0 ? [one, two] : [two, one];
      const lease = await from.lock('a').acquire();
      const entered = later(to.lock('a').acquire());
      await untilWaiting(one, 'a');
      const releasedAt = performance.now();
      await lease.release();
      await (await entered).release();
      quick.push(performance.now() - releasedAt);
    }
    figure(
      'hand-off to another process while turns change, median',
      quick.sort((a, b) => a - b)[6] as number,
    );
    const lease = await one.lock('b').acquire();
    const entered = later(two.lock('b').acquire());
    await sleep(4_500);
    const releasedAt = performance.now();
    await lease.release();
    const next = await entered;
    const slow = performance.now() - releasedAt;
    figure('hand-off to another process after a hold of 4.5 s', slow);
    expect(slow).toBeLessThan(900 + SLACK_MS);
    await next.release();
  });

  it('after a release in the same process: none', async () => {
    await using lab = new Lab();
    const server = await lab.server();
    const locks = await lab.locks(server);
    const lease = await locks.lock('a').acquire();
    const entered = later(locks.lock('a').acquire());
    await untilWaiting(locks, 'a');
    await sleep(2_500);
    const releasedAt = performance.now();
    await lease.release();
    const next = await entered;
    figure('hand-off inside the process after a hold of 2.5 s', performance.now() - releasedAt);
    expect(performance.now() - releasedAt).toBeLessThan(300);
    await next.release();
  });
});
