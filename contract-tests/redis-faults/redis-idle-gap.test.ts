import { machineNow } from '@locks/core/conformance/process';
import { describe, expect, it } from 'vitest';
import { libraries } from '../src/harnesses/redis/open-client.ts';
import { waitUntil } from '@locks/test-servers';
import { figure, watched } from '../src/fault-lab/observe.ts';
import Lab, { untilListening } from './lab.ts';

const CHECK_MS = 1_000;
/** What a busy machine may add. */
const SLACK_MS = 700;

describe.concurrent.each(libraries)('the idle gap with %s', { timeout: 30_000 }, (library) => {
  it('is nothing when the next in the queue was killed: it is passed over in the same step', async () => {
    await using lab = new Lab(library);
    const redis = await lab.server();
    const [holder, last] = [await lab.locks(redis), await lab.locks(redis)];
    const next = await lab.worker(redis);
    const lease = await holder.lock('a').acquire();
    next.call.acquire('a').catch(() => undefined);
    await untilListening(redis, 'a');
    const entered = last.lock('a').acquire();
    await untilListening(redis, 'a', 2);
    await next.kill();
    const listening = async () => (await redis.command('PUBSUB', 'CHANNELS')) as unknown[];
    await waitUntil(async () => (await listening()).length === 1, { what: 'the end of its subscription' });
    await lease.release();
    const releasedAt = machineNow();
    const after = await entered;
    const gap = machineNow() - releasedAt;
    figure(`${library}, next in the queue killed`, gap);
    expect(gap).toBeLessThan(SLACK_MS);
    await after.release();
  });

  it("is at most one check after a foreign DEL of the holder's key", async () => {
    await using lab = new Lab(library);
    const redis = await lab.server();
    const [holder, waiter] = [await lab.locks(redis), await lab.locks(redis)];
    await holder.lock('a').acquire();
    const entered = waiter.lock('a').acquire();
    await untilListening(redis, 'a');
    expect(await redis.command('DEL', 'lock::a')).toBe(1);
    const deletedAt = machineNow();
    const lease = await entered;
    const gap = machineNow() - deletedAt;
    figure(`${library}, after a foreign DEL`, gap);
    expect(gap).toBeLessThan(CHECK_MS + SLACK_MS);
    await lease.release();
  });

  it('is at most one check after the DEL of a foreign SET NX PX lock, which excluded us until then', async () => {
    await using lab = new Lab(library);
    const redis = await lab.server();
    const waiter = await lab.locks(redis);
    expect(await redis.command('SET', 'lock::a', 'theirs', 'NX', 'PX', 20_000)).toBe('OK');
    expect(await waiter.lock('a').tryAcquire()).toBeUndefined();
    const entered = watched(waiter.lock('a').acquire());
    await untilListening(redis, 'a');
    expect(await redis.command('GET', 'lock::a')).toBe('theirs');
    expect(entered.settled).toBe(false);
    await redis.command('DEL', 'lock::a');
    const deletedAt = machineNow();
    const lease = await entered.work;
    const gap = machineNow() - deletedAt;
    figure(`${library}, after a foreign release`, gap);
    expect(gap).toBeLessThan(CHECK_MS + SLACK_MS);
    expect(await redis.command('SET', 'lock::a', 'theirs', 'NX', 'PX', 1_000)).toBe(null);
    await lease.release();
  });

  it('is at most one check when the message of the hand-off is lost', async () => {
    await using lab = new Lab(library);
    const redis = await lab.server();
    const proxy = await lab.proxy(redis);
    const [holder, waiter] = [await lab.locks(redis), await lab.locks(proxy)];
    const lease = await holder.lock('a').acquire();
    const entered = waiter.lock('a').acquire();
    await untilListening(redis, 'a');
    proxy.blackhole({ direction: 'toClient', only: (connection) => connection.sawSubscribe });
    await lease.release();
    const releasedAt = machineNow();
    const after = await entered;
    const gap = machineNow() - releasedAt;
    figure(`${library}, message lost`, gap);
    expect(gap).toBeGreaterThan(5);
    expect(gap).toBeLessThan(CHECK_MS + SLACK_MS);
    expect(after.validForMs).toBeGreaterThan(0);
    await after.release();
  });
});
