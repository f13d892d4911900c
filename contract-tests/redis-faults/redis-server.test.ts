import { waitUntil } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { libraries } from '../src/redis/open-client.ts';
import { failure, figure, Lab, lossOf, untilListening, untilWaiting, watched } from './lab.ts';

const CHECK_MS = 1_000;
/** Both clients try again after less than this when the server is back at once. */
const RECONNECT_MS = 500;
const SLACK_MS = 700;

describe.concurrent.each(libraries)('what happens to the server, with %s', { timeout: 40_000 }, (library) => {
  it('restarted without data: the lease is told lost at its next renewal, and waiters get on, one at a time', async () => {
    await using lab = new Lab();
    const redis = await lab.redis();
    const holder = await lab.locks(library, redis, { ttlMs: 3_000 });
    const [first, second] = [await lab.locks(library, redis), await lab.locks(library, redis)];
    const lease = await holder.lock('a').acquire();
    const lost = lossOf(lease);
    const waits = [
      watched(first.lock('a').acquire({ waitMs: 20_000 })),
      watched(second.lock('a').acquire({ waitMs: 20_000 })),
    ];
    await untilWaiting(holder, 'a', 2);
    await redis.restart();
    const restartedAt = performance.now();
    expect((await lost).reason).toMatch(/^(force-released|taken-over)$/);
    figure(`${library}, restart: loss told after`, (await lost).at - restartedAt);
    expect(await failure(lease.release())).toMatchObject({ code: 'LOCK_LOST' });
    // The queue is gone too: whoever looks first is in. No two at once, and both in the end.
    const next = await Promise.race(waits.map(({ work }) => work));
    figure(`${library}, restart: next waiter in after`, performance.now() - restartedAt);
    expect(performance.now() - restartedAt).toBeLessThan(CHECK_MS + RECONNECT_MS + SLACK_MS);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken as bigint);
    await untilWaiting(holder, 'a', 1);
    expect(waits.filter(({ settled }) => settled)).toHaveLength(1);
    await next.release();
    const tokens = (await Promise.all(waits.map(({ work }) => work))).map((each) => each.fencingToken);
    expect(new Set(tokens).size).toBe(2);
    expect(tokens.every((token) => (token as bigint) >= (next.fencingToken as bigint))).toBe(true);
  });

  it('SCRIPT FLUSH: nothing is noticed by an acquire, a renewal, a hand-off or a release', async () => {
    await using lab = new Lab();
    const redis = await lab.redis();
    const [holder, waiter] = [await lab.locks(library, redis), await lab.locks(library, redis)];
    const flush = () => redis.command('SCRIPT', 'FLUSH');
    const lease = await holder.lock('a').acquire();
    await flush();
    await lease.renew();
    const entered = waiter.lock('a').acquire();
    await untilListening(redis, 'a');
    await flush();
    const releasedAt = performance.now();
    await lease.release();
    const next = await entered;
    expect(performance.now() - releasedAt).toBeLessThan(SLACK_MS);
    await flush();
    expect(await holder.lock('a').tryAcquire()).toBeUndefined();
    await flush();
    await next.release();
    await flush();
    const again = await holder.lock('a').acquire({ waitMs: 0 });
    await again.release();
  });

  it('CLIENT KILL of all clients: the lease goes on, the release works, the waiter is served', async () => {
    await using lab = new Lab();
    const redis = await lab.redis();
    const holder = await lab.locks(library, redis, { ttlMs: 3_000 });
    const waiter = await lab.locks(library, redis);
    const lease = await holder.lock('a').acquire();
    const entered = waiter.lock('a').acquire({ waitMs: 20_000 });
    await untilListening(redis, 'a');
    await redis.command('CLIENT', 'KILL', 'TYPE', 'normal');
    await redis.command('CLIENT', 'KILL', 'TYPE', 'pubsub');
    // Longer than its ttl: renewals go on over new connections.
    await waitUntil(() => lease.validForMs > 2_500, { what: 'a renewal after the reconnect', everyMs: 50 });
    expect(lease.signal.aborted).toBe(false);
    await lease.release();
    const releasedAt = performance.now();
    const next = await entered;
    figure(`${library}, CLIENT KILL: hand-off after it`, performance.now() - releasedAt);
    expect(performance.now() - releasedAt).toBeLessThan(CHECK_MS + SLACK_MS);
    await next.release();
  });

  it('CLIENT PAUSE for longer than the ttl: the holder is told before anyone else gets in', async () => {
    await using lab = new Lab();
    const redis = await lab.redis();
    const holder = await lab.locks(library, redis, { ttlMs: 1_000 });
    const waiter = await lab.locks(library, redis, { ttlMs: 1_000 });
    const lease = await holder.lock('a').acquire();
    const lost = lossOf(lease);
    const entered = watched(waiter.lock('a').acquire({ waitMs: 20_000 }));
    await untilWaiting(waiter, 'a');
    const pausedAt = performance.now();
    await redis.command('CLIENT', 'PAUSE', 2_500, 'ALL');
    const { reason, at } = await lost;
    expect(reason).toBe('unconfirmed');
    expect(at - pausedAt).toBeLessThan(1_000 + SLACK_MS);
    expect(entered.settled).toBe(false);
    expect(lease.validForMs).toBe(0);
    const next = await entered.work;
    figure(`${library}, CLIENT PAUSE of 2500: next waiter in after`, performance.now() - pausedAt);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken as bigint);
    next.assertValid();
    const [state, ...more] = (await holder.inspect('a')).holders;
    expect(more).toEqual([]);
    expect(state?.acquisitionId).toBe(next.acquisitionId);
    await next.release();
  });

  it('CLIENT PAUSE during a first acquire: LOCK_BACKEND in time, and nothing is left once it is over', async () => {
    await using lab = new Lab();
    const redis = await lab.redis();
    const locks = await lab.locks(library, redis);
    await (await locks.lock('warm').acquire()).release();
    await redis.command('CLIENT', 'PAUSE', 1_500, 'ALL');
    const startedAt = performance.now();
    expect(await failure(locks.lock('a').acquire({ waitMs: 400 }))).toMatchObject({ code: 'LOCK_BACKEND' });
    expect(performance.now() - startedAt).toBeLessThan(400 + SLACK_MS);
    // The command runs when the pause is over; the abandon that was sent after it takes it back.
    await redis.command('PING');
    await waitUntil(async () => (await redis.command('EXISTS', 'lock:a')) === 0, {
      what: 'no ghost',
      timeoutMs: 2_000,
    });
    await (await locks.lock('a').acquire({ waitMs: 1_000 })).release();
  });
});
