import { describe, expect, it } from 'vitest';
import { libraries } from '../src/redis/open-client.ts';
import { waitUntil } from '@locks/test-servers';
import { figure, Lab, untilListening, untilWaiting, watched } from './lab.ts';
import { machineNow } from './worker-orders.ts';

const CLAIM_MS = 2_000;
const CHECK_MS = 1_000;
/** What a busy machine may add. */
const SLACK_MS = 700;

describe.concurrent.each(libraries)('the idle gap with %s', { timeout: 30_000 }, (library) => {
  it('is at most one check after the lease of a holder that was killed', async () => {
    await using lab = new Lab();
    const redis = await lab.redis();
    const holder = await lab.worker(library, redis, { ttlMs: 1_500 });
    const waiter = await lab.locks(library, redis);
    await holder.acquire('a');
    const entered = waiter.lock('a').acquire();
    await untilWaiting(waiter, 'a');
    await holder.kill();
    const left = Number(await redis.command('PTTL', 'lock:a'));
    const endsAt = machineNow() + left;
    const lease = await entered;
    const gap = machineNow() - endsAt;
    figure(`${library}, after the lease of a killed holder`, gap);
    expect(left).toBeGreaterThan(0);
    expect(gap).toBeGreaterThan(-20);
    expect(gap).toBeLessThan(CHECK_MS + SLACK_MS);
    await lease.release();
  });

  it('is nothing when the next in line was killed: it is passed over in the same step', async () => {
    await using lab = new Lab();
    const redis = await lab.redis();
    const [holder, last] = [await lab.locks(library, redis), await lab.locks(library, redis)];
    const next = await lab.worker(library, redis);
    const lease = await holder.lock('a').acquire();
    next.acquire('a').catch(() => undefined);
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
    figure(`${library}, next in line killed`, gap);
    expect(gap).toBeLessThan(SLACK_MS);
    await after.release();
  });

  it('is at most the claim time and one check when the next in line is frozen, which learns that it missed its turn', async () => {
    await using lab = new Lab();
    const redis = await lab.redis();
    const [holder, last] = [await lab.locks(library, redis), await lab.locks(library, redis)];
    const frozen = await lab.worker(library, redis);
    const lease = await holder.lock('a').acquire({ ttlMs: 20_000 });
    const missed = watched(frozen.acquire('a', { waitMs: 20_000 }));
    await untilListening(redis, 'a');
    const entered = last.lock('a').acquire();
    await untilListening(redis, 'a', 2);
    frozen.freeze();
    await lease.release();
    const releasedAt = machineNow();
    const after = await entered;
    const gap = machineNow() - releasedAt;
    figure(`${library}, next in line frozen`, gap);
    expect(gap).toBeGreaterThan(CLAIM_MS - 50);
    expect(gap).toBeLessThan(CLAIM_MS + CHECK_MS + SLACK_MS);
    // It finds the message that granted it the lock, 2 s too late, and must not believe it.
    frozen.thaw();
    await untilWaiting(holder, 'a');
    expect(missed.settled).toBe(false);
    after.assertValid();
    await after.release();
    const late = await missed.work;
    expect(BigInt(late.token)).toBeGreaterThan(after.fencingToken as bigint);
    await frozen.release(late.id);
  });

  it("is at most one check after a foreign DEL of the holder's key", async () => {
    await using lab = new Lab();
    const redis = await lab.redis();
    const [holder, waiter] = [await lab.locks(library, redis), await lab.locks(library, redis)];
    await holder.lock('a').acquire();
    const entered = waiter.lock('a').acquire();
    await untilListening(redis, 'a');
    expect(await redis.command('DEL', 'lock:a')).toBe(1);
    const deletedAt = machineNow();
    const lease = await entered;
    const gap = machineNow() - deletedAt;
    figure(`${library}, after a foreign DEL`, gap);
    expect(gap).toBeLessThan(CHECK_MS + SLACK_MS);
    await lease.release();
  });

  it('is at most one check after the DEL of a foreign SET NX PX lock, which excluded us until then', async () => {
    await using lab = new Lab();
    const redis = await lab.redis();
    const waiter = await lab.locks(library, redis);
    expect(await redis.command('SET', 'lock:a', 'theirs', 'NX', 'PX', 20_000)).toBe('OK');
    expect(await waiter.lock('a').tryAcquire()).toBeUndefined();
    const entered = watched(waiter.lock('a').acquire());
    await untilListening(redis, 'a');
    expect(await redis.command('GET', 'lock:a')).toBe('theirs');
    expect(entered.settled).toBe(false);
    await redis.command('DEL', 'lock:a');
    const deletedAt = machineNow();
    const lease = await entered.work;
    const gap = machineNow() - deletedAt;
    figure(`${library}, after a foreign release`, gap);
    expect(gap).toBeLessThan(CHECK_MS + SLACK_MS);
    expect(await redis.command('SET', 'lock:a', 'theirs', 'NX', 'PX', 1_000)).toBe(null);
    await lease.release();
  });

  it('is at most one check when the message of the hand-off is lost', async () => {
    await using lab = new Lab();
    const redis = await lab.redis();
    const proxy = await lab.proxy(redis);
    const [holder, waiter] = [await lab.locks(library, redis), await lab.locks(library, proxy)];
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
