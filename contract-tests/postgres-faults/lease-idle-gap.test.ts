import { type PostgresServer, startPostgres } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freeze } from '../src/fault-lab/fault-lab.ts';
import { figure, later, untilWaiting } from '../src/fault-lab/observe.ts';
import LeaseLab, { SLACK_MS, untilStoreKnows } from './lease-lab.ts';

/** As docs/backends/postgres.md has them. */
const CHECK_MS = 1_000;
const ALIVE_MS = 3 * CHECK_MS;
const TTL_MS = 1_500;
/** A hand-off takes milliseconds; the machine may be busy with other suites. */
const AT_ONCE_MS = SLACK_MS / 4;

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

/** Releases a lease. Resolves to how long the next acquisition waited for it, and lets that one go. */
async function gapAfter(
  lease: { release(): Promise<void> },
  entered: Promise<typeof lease>,
): Promise<number> {
  const releasedAt = performance.now();
  await lease.release();
  const next = await entered;
  const gap = performance.now() - releasedAt;
  await next.release();
  return gap;
}

function medianOf(gaps: readonly number[]): number {
  return gaps.toSorted((a, b) => a - b)[gaps.length >> 1] as number;
}

// Side by side: they mostly wait.
describe.concurrent('the idle gap of a lease table', { timeout: 60_000 }, () => {
  it('after a release is one message', async () => {
    await using lab = new LeaseLab();
    const [holder, waiter] = [lab.locks(server), lab.locks(server)];
    const gaps: number[] = [];
    for (let round = 0; round < 20; round += 1) {
      const lease = await holder.lock('release').acquire();
      const entered = waiter.lock('release').acquire();
      await untilWaiting(holder, 'release');
      gaps.push(await gapAfter(lease, entered));
    }
    figure('release, median of 20', medianOf(gaps));
    expect(medianOf(gaps)).toBeLessThan(AT_ONCE_MS);
  });

  it('is the same where the next two in the queue are of a process that was just killed', async () => {
    await using lab = new LeaseLab();
    const options = { schema: 'killed', ttlMs: 30_000 };
    const [holder, last] = [lab.locks(server, options), lab.locks(server, options)];
    const gaps: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      const lease = await holder.lock('a').acquire();
      const dying = await lab.worker(server, options);
      for (const count of [1, 2]) {
        void later(dying.call.acquire('a'));
        await untilWaiting(holder, 'a', count);
      }
      const entered = later(last.lock('a').acquire({ waitMs: 20_000 }));
      await untilWaiting(holder, 'a', 3);
      await untilStoreKnows(server, options.schema, 2);
      await dying.kill();
      // The server has noticed the end of the connection.
      await untilStoreKnows(server, options.schema, 1);
      gaps.push(await gapAfter(lease, entered));
    }
    figure('next two in the queue killed, median of 5', medianOf(gaps));
    expect(medianOf(gaps)).toBeLessThan(AT_ONCE_MS);
  });

  it('is the ttl of the next in the queue where that one has just frozen', async () => {
    await using lab = new LeaseLab();
    const options = { schema: 'frozen' };
    const [holder, last] = [lab.locks(server, options), lab.locks(server, options)];
    const lease = await holder.lock('a').acquire();
    const freezing = await lab.worker(server, { ...options, ttlMs: TTL_MS });
    void later(freezing.call.acquire('a'));
    await untilWaiting(holder, 'a', 1);
    const entered = later(last.lock('a').acquire());
    await untilWaiting(holder, 'a', 2);
    await untilStoreKnows(server, options.schema, 2);
    await freeze(freezing);
    const gap = await gapAfter(lease, entered);
    figure(`next in the queue frozen, with a ttl of ${TTL_MS} ms`, gap);
    expect(gap).toBeLessThan(TTL_MS + CHECK_MS + SLACK_MS);
  });

  it('is none where the next in the queue has stood still for 3 s', async () => {
    await using lab = new LeaseLab();
    const options = { schema: 'long_frozen', ttlMs: 30_000 };
    const [holder, freezing, last] = [
      lab.locks(server, options),
      await lab.worker(server, options),
      lab.locks(server, options),
    ];
    const lease = await holder.lock('a').acquire();
    void later(freezing.call.acquire('a'));
    await untilWaiting(holder, 'a', 1);
    const entered = later(last.lock('a').acquire({ waitMs: 20_000 }));
    await untilWaiting(holder, 'a', 2);
    await freeze(freezing);
    await untilWaiting(holder, 'a', 1);
    const gap = await gapAfter(lease, entered);
    figure('next in the queue frozen for long', gap);
    expect(gap).toBeLessThan(AT_ONCE_MS);
  });

  it('is a heartbeat and a check where the next in the queue polled, and was killed', async () => {
    await using lab = new LeaseLab();
    const options = { schema: 'polling', ttlMs: 30_000 };
    const [holder, last] = [lab.locks(server, options), lab.locks(server, options)];
    const lease = await holder.lock('a').acquire();
    const dying = await lab.worker(server, { ...options, listen: false });
    void later(dying.call.acquire('a'));
    await untilWaiting(holder, 'a', 1);
    const entered = later(last.lock('a').acquire());
    await untilWaiting(holder, 'a', 2);
    await dying.kill();
    const gap = await gapAfter(lease, entered);
    figure('next in the queue polled, and was killed', gap);
    expect(gap).toBeLessThan(ALIVE_MS + CHECK_MS + SLACK_MS);
  });
});
