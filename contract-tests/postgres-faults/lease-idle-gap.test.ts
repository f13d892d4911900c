import { type PostgresServer, startPostgres } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { figure, LeaseLab, SLACK_MS, untilWaiting } from './lease-lab.ts';

/** As docs/backends/postgres.md has them. */
const CLAIM_MS = 2_000;
const CHECK_MS = 1_000;

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

// Side by side: they mostly wait.
describe.concurrent('the idle gap of a lease table', { timeout: 30_000 }, () => {
  it('after the death of a holder is a moment after its ttl', async () => {
    await using lab = new LeaseLab();
    const [dying, waiter] = [await lab.holder(server, { ttlMs: 2_000 }), lab.locks(server)];
    await dying.acquire('holder');
    const entered = waiter.lock('holder').acquire();
    await untilWaiting(waiter, 'holder');
    await dying.kill();
    const { expiresInMs = 0 } = (await waiter.inspect('holder')).holders[0] ?? {};
    const expiresAt = performance.now() + expiresInMs;
    const lease = await entered;
    const gap = performance.now() - expiresAt;
    figure('holder killed, after the end of its lease', gap);
    expect(gap).toBeLessThan(CHECK_MS + SLACK_MS);
    await lease.release();
  });

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

  it('after the death of the one whose turn it is, is the claim time and a look; two of one process cost no more', async () => {
    await using lab = new LeaseLab();
    const [holder, dying, last] = [lab.locks(server), await lab.holder(server), lab.locks(server)];
    const lease = await holder.lock('waiter').acquire();
    void dying.acquire('waiter');
    await untilWaiting(holder, 'waiter', 1);
    void dying.acquire('waiter').catch(() => undefined);
    await untilWaiting(holder, 'waiter', 2);
    const entered = last.lock('waiter').acquire();
    await untilWaiting(holder, 'waiter', 3);
    await dying.kill();
    await lease.release();
    const releasedAt = performance.now();
    const next = await entered;
    const gap = performance.now() - releasedAt;
    figure('next two in line killed', gap);
    expect(gap).toBeLessThan(CLAIM_MS + SLACK_MS);
    await next.release();
  });

  it('is none when the one whose turn it is has been dead for 3 s', async () => {
    await using lab = new LeaseLab();
    const [holder, dying, last] = [lab.locks(server), await lab.holder(server), lab.locks(server)];
    const lease = await holder.lock('long dead').acquire();
    void dying.acquire('long dead').catch(() => undefined);
    await untilWaiting(holder, 'long dead', 1);
    const entered = last.lock('long dead').acquire();
    await untilWaiting(holder, 'long dead', 2);
    await dying.kill();
    await untilWaiting(holder, 'long dead', 1);
    await lease.release();
    const releasedAt = performance.now();
    const next = await entered;
    const gap = performance.now() - releasedAt;
    figure('next in line long dead', gap);
    expect(gap).toBeLessThan(SLACK_MS);
    await next.release();
  });

  it('a frozen process that was passed over does not believe the message that it finds', async () => {
    await using lab = new LeaseLab();
    const [holder, frozen, last] = [lab.locks(server), await lab.holder(server), lab.locks(server)];
    const lease = await holder.lock('frozen').acquire();
    const missed = frozen.acquire('frozen');
    await untilWaiting(holder, 'frozen', 1);
    const entered = last.lock('frozen').acquire();
    await untilWaiting(holder, 'frozen', 2);
    frozen.freeze();
    await lease.release();
    const releasedAt = performance.now();
    const next = await entered;
    figure('next in line frozen', performance.now() - releasedAt);
    frozen.thaw();
    await untilWaiting(holder, 'frozen', 1);
    next.assertValid();
    await next.release();
    const late = await missed;
    if ('error' in late) expect.fail(late.error);
    expect(BigInt(late.token)).toBeGreaterThan(next.fencingToken as bigint);
  });
});
