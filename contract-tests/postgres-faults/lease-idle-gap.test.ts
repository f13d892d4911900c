import { type PostgresServer, startPostgres } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { figure, untilWaiting } from '../src/fault-lab/observe.ts';
import LeaseLab, { SLACK_MS } from './lease-lab.ts';

/** As docs/backends/postgres.md has them. */
const CLAIM_MS = 2_000;

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

// Side by side: they mostly wait.
describe.concurrent('the idle gap of a lease table', { timeout: 30_000 }, () => {
  it('after a release is one message', async () => {
    await using lab = new LeaseLab();
    const [holder, waiter] = [lab.locks(server), lab.locks(server)];
    const gaps: number[] = [];
    for (let round = 0; round < 20; round += 1) {
      const lease = await holder.lock('release').acquire();
      const entered = waiter.lock('release').acquire();
      await untilWaiting(holder, 'release');
      const releasedAt = performance.now();
      await lease.release();
      const next = await entered;
      gaps.push(performance.now() - releasedAt);
      await next.release();
    }
    const median = gaps.sort((a, b) => a - b)[10] as number;
    figure('release, median of 20', median);
    expect(median).toBeLessThan(SLACK_MS / 4);
  });

  it('is the claim time and a check where the next two in the queue are of a process that died', async () => {
    await using lab = new LeaseLab();
    const [holder, dying, last] = [lab.locks(server), await lab.worker(server), lab.locks(server)];
    const lease = await holder.lock('waiter').acquire();
    dying.call.acquire('waiter').catch(() => undefined);
    await untilWaiting(holder, 'waiter', 1);
    dying.call.acquire('waiter').catch(() => undefined);
    await untilWaiting(holder, 'waiter', 2);
    const entered = last.lock('waiter').acquire();
    await untilWaiting(holder, 'waiter', 3);
    await dying.kill();
    await lease.release();
    const releasedAt = performance.now();
    const next = await entered;
    const gap = performance.now() - releasedAt;
    figure('next two in the queue killed', gap);
    expect(gap).toBeLessThan(CLAIM_MS + SLACK_MS);
    await next.release();
  });

  it('is none when the one whose turn it is has been dead for 3 s', async () => {
    await using lab = new LeaseLab();
    const [holder, dying, last] = [lab.locks(server), await lab.worker(server), lab.locks(server)];
    const lease = await holder.lock('long dead').acquire();
    dying.call.acquire('long dead').catch(() => undefined);
    await untilWaiting(holder, 'long dead', 1);
    const entered = last.lock('long dead').acquire();
    await untilWaiting(holder, 'long dead', 2);
    await dying.kill();
    await untilWaiting(holder, 'long dead', 1);
    await lease.release();
    const releasedAt = performance.now();
    const next = await entered;
    const gap = performance.now() - releasedAt;
    figure('next in the queue long dead', gap);
    expect(gap).toBeLessThan(SLACK_MS);
    await next.release();
  });
});
