import { call, granted, request, startProxy, startRedis } from '@locks/test-servers';
import { fresh, redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { describe, expect, it } from 'vitest';
import { callFor, participant } from './participant.ts';

useRedis();

/** Measures the CPU time of iterations of the event loop, which a busy machine leaves as it is. Returns the longest, in ms. */
function watchTurns(): () => number {
  let busiestMs = 0;
  let used = process.threadCpuUsage();
  const timer = setInterval(() => {
    const { user, system } = process.threadCpuUsage(used);
    busiestMs = Math.max(busiestMs, (user + system) / 1_000);
    used = process.threadCpuUsage();
  }, 1);
  return () => {
    clearInterval(timer);
    return busiestMs;
  };
}

describe('renewal', () => {
  it('reports for each lease whether it is held, gone or taken over', async () => {
    await using a = participant(redis);
    const [kept, gone, taken] = [await a.take(fresh(), 5000), await a.take(fresh()), await a.take(fresh())];
    await redis.command('DEL', `lock::${gone.request.resource}`);
    await redis.command('SET', `lock::${taken.request.resource}`, 'stranger');
    const items = [kept, gone, taken].map((grant) => ({ grant, ttlMs: 60_000 }));
    expect(await a.backend.renew(items, call)).toEqual([
      { status: 'held' },
      { status: 'lost', reason: 'force-released' },
      { status: 'lost', reason: 'taken-over' },
    ]);
    expect(Number(await redis.command('PTTL', `lock::${kept.request.resource}`))).toBeGreaterThan(50_000);
    expect(await redis.command('GET', `lock::${taken.request.resource}`)).toBe('stranger');
  });

  it('that reaches the server behind a later downgrade tells nothing: it asked for the exclusive form', async () => {
    await using a = participant(redis);
    const held = await a.take(fresh());
    const { port } = a;
    const send = port.send.bind(port);
    let goOn = (): void => {};
    const downgraded = new Promise<void>((resolve) => (goOn = resolve));
    port.send = async (key, command) => {
      port.send = send;
      await downgraded;
      return send(key, command);
    };
    const renewed = a.backend.renew([{ grant: held, ttlMs: 60_000 }], call);
    expect(await a.backend.downgrade?.(held, call)).toMatchObject({ status: 'held' });
    goOn();
    expect(await renewed).toMatchObject([{ status: 'unknown' }]);
    expect(await a.backend.renew([{ grant: held, ttlMs: 60_000 }], call)).toMatchObject([{ status: 'held' }]);
    expect(await a.backend.release(held, call)).toBe('released');
  });

  it('keeps 10 000 leases with at most 100 requests, and leaves the event loop free', async () => {
    await using proxy = await startProxy(redis);
    await using a = participant(proxy);
    const items: { grant: Awaited<ReturnType<typeof a.take>>; ttlMs: number }[] = [];
    for (let batch = 0; batch < 20; batch++) {
      const grants = await Promise.all(Array.from({ length: 500 }, () => a.take(fresh())));
      items.push(...grants.map((grant) => ({ grant, ttlMs: 60_000 })));
    }
    proxy.resetCounts();
    const busiest = watchTurns();
    const renewalStatuses = await a.backend.renew(items, call);
    const busiestMs = busiest();
    expect(renewalStatuses.every(({ status }) => status === 'held')).toBe(true);
    expect(proxy.countRequests()).toBeLessThanOrEqual(100);
    // The proxy works in this process too: a generous bound against one long block.
    expect(busiestMs).toBeLessThan(50);
  });

  it('answers unknown, without an exception, while nothing is answered', async () => {
    await using proxy = await startProxy(redis);
    await using a = participant(proxy);
    const grant = await a.take(fresh());
    proxy.stall();
    const [renewalStatus] = await a.backend.renew([{ grant, ttlMs: 30_000 }], callFor(100));
    expect(renewalStatus?.status).toBe('unknown');
    await proxy.heal();
  });

  it('answers unknown for a server that refuses', async () => {
    await using a = participant(redis, {}, { commandTimeout: 200 });
    const grant = await a.take(fresh());
    await redis.command('CLIENT', 'PAUSE', 600, 'ALL');
    const [renewalStatus] = await a.backend.renew([{ grant, ttlMs: 30_000 }], call);
    expect(renewalStatus?.status).toBe('unknown');
  });
});

describe('waiting in numbers', () => {
  it('costs a few requests a second for a thousand waiters on held locks', async () => {
    await using proxy = await startProxy(redis);
    await using holder = participant(redis);
    await using a = participant(proxy);
    const names = Array.from({ length: 1000 }, fresh);
    await Promise.all(names.map((name) => holder.take(name)));
    const waiters = names.map((name) => request(name));
    await Promise.all(waiters.map((waiter) => a.queue(waiter)));
    proxy.resetCounts();
    const from = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 3000));
    const seconds = (performance.now() - from) / 1000;
    expect(proxy.countRequests() / seconds).toBeLessThanOrEqual(20);
    expect(proxy.countRequests()).toBeGreaterThan(0);
    await Promise.all(waiters.map((waiter) => a.backend.abandon(waiter, call)));
    proxy.resetCounts();
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(proxy.countRequests()).toBe(0);
  });

  it('leaves nothing but token keys and the marker of the layout after many names', async () => {
    await using own = await startRedis();
    await using a = participant(own);
    for (let batch = 0; batch < 100; batch++) {
      await Promise.all(
        Array.from({ length: 1000 }, async () => {
          const wanted = request(fresh());
          await a.backend.release(granted(await a.backend.attempt(wanted, true, call)), call);
        }),
      );
    }
    expect(await own.command('DBSIZE')).toBeLessThanOrEqual(16_384 + 1);
    const all = (await own.command('KEYS', '*')) as string[];
    const keys = all.filter((key) => key !== 'lock:{layout}');
    expect(keys).toHaveLength(all.length - 1);
    expect(keys.every((key) => /^locks:token:\{\d+\}$/.test(key))).toBe(true);
  });
});
