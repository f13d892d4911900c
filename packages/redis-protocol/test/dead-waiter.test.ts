import { call, request, startProxy, waitUntil } from '@locks/test-servers';
import { fresh, redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { describe, expect, it } from 'vitest';
import { participant } from './participant.ts';

useRedis();

describe('a waiter', () => {
  it('that died with its process is passed over at once', async () => {
    await using a = participant(redis);
    const dying = participant(redis);
    await dying.openChannel();
    const name = fresh();
    const grant = await a.take(name);
    await dying.queue(request(name));
    const { turn: next } = await a.queue(request(name));
    await dying[Symbol.asyncDispose]();
    await waitUntil(async () => String(await redis.command('PUBSUB', 'CHANNELS')).split(',').length === 1, {
      what: 'the end of its channel',
    });
    const from = performance.now();
    await a.backend.release(grant, call);
    expect(await next).toBeDefined();
    expect(performance.now() - from).toBeLessThan(1000);
  });

  it('frozen with its process for longer than three checks is passed over', async () => {
    await using proxy = await startProxy(redis);
    await using a = participant(redis);
    await using frozen = participant(proxy, { maxPollMs: 200 });
    await frozen.openChannel();
    const name = fresh();
    const grant = await a.take(name);
    await frozen.queue(request(name));
    const { turn: next } = await a.queue(request(name));
    proxy.stall();
    await waitUntil(async () => (await a.backend.inspect(name, call)).waiters.length === 1, {
      what: 'the end of its life in the queue',
    });
    const from = performance.now();
    await a.backend.release(grant, call);
    expect(await next).toBeDefined();
    expect(performance.now() - from).toBeLessThan(200);
  });

  it('frozen with its process once it was handed the lock costs those behind it its ttl, as a holder', async () => {
    await using proxy = await startProxy(redis);
    await using a = participant(redis);
    await using frozen = participant(proxy);
    await frozen.openChannel();
    const name = fresh();
    const grant = await a.take(name);
    await frozen.queue(request(name, 700));
    const { turn: next } = await a.queue(request(name));
    proxy.stall();
    const from = performance.now();
    await a.backend.release(grant, call);
    expect(await next).toBeDefined();
    const gap = performance.now() - from;
    expect(gap).toBeGreaterThan(650);
    expect(gap).toBeLessThan(700 + 1000 + 700);
  });
});
