import type { Call } from '@locks/core/backend';
import { call, request, startProxy, waitUntil } from '@locks/test-servers';
import { fresh, redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { scripts } from '../src/generated/scripts.ts';
import { participant } from './participant.ts';

useRedis();

describe('a queue', () => {
  it('is served in order across processes, with rising tokens', async () => {
    await using a = participant(redis);
    await using b = participant(redis);
    await using c = participant(redis);
    const name = fresh();
    const order: number[] = [];
    let grant = await a.take(name);
    const parties = [b, a, c, c, a, b, b];
    const turns = [];
    for (const [index, who] of parties.entries()) {
      const { turn } = await who.queue(request(name));
      turns.push(turn.then((granted) => (order.push(index), granted)));
    }
    let holder = a;
    for (const [index, turn] of turns.entries()) {
      expect(await holder.backend.release(grant, call)).toBe('released');
      const next = await turn;
      if (next === undefined) throw new Error('no grant');
      expect(next.fencingToken).toBeGreaterThan(grant.fencingToken as bigint);
      grant = next;
      holder = parties[index] as typeof a;
    }
    expect(await holder.backend.release(grant, call)).toBe('released');
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6]);
    expect(await redis.command('KEYS', `*${name}*`)).toEqual([]);
  });

  it('does not refuse a waiter that a check has moved to another reply address meanwhile, where as many wait as it allows', async () => {
    await using a = participant(redis);
    await using b = participant(redis, { maxPollMs: 60_000 });
    await b.openChannel();
    const name = fresh();
    await a.take(name);
    const wanted = { ...request(name), maxWaiters: 1 };
    expect((await b.backend.attempt(wanted, true, call)).status).toBe('contended');
    const queue = `{lock::${name}}:q`;
    const [member, position] = (await redis.command(
      'ZRANGE',
      queue,
      '0',
      '+inf',
      'BYSCORE',
      'WITHSCORES',
    )) as string[];
    await redis.command('ZREM', queue, String(member));
    await redis.command(
      'ZADD',
      queue,
      String(position),
      String(member).replace('|=lock:ch:', '|=lock:ch:moved-'),
    );
    expect((await b.backend.attempt(wanted, true, call)).status).toBe('contended');
    expect((await b.backend.attempt({ ...request(name), maxWaiters: 1 }, true, call)).status).toBe('full');
  });

  it('does not tell a waiter of a conflict that a check has moved meanwhile, and whose limit was changed', async () => {
    await using a = participant(redis);
    await using b = participant(redis, { maxPollMs: 60_000 });
    await b.openChannel();
    const name = fresh();
    const permits = (weight: number) =>
      ({ ...request(name), mode: { kind: 'permit', limit: 2, weight } }) as const;
    expect((await a.backend.attempt(permits(2), false, call)).status).toBe('granted');
    const wanted = permits(1);
    expect((await b.backend.attempt(wanted, true, call)).status).toBe('contended');
    const queue = `{lock::${name}}:q`;
    const members = (await redis.command('ZRANGE', queue, '0', '+inf', 'BYSCORE', 'WITHSCORES')) as string[];
    const [member, position] = [String(members[0]), String(members[1])];
    await redis.command('ZREM', queue, member);
    await redis.command('ZADD', queue, position, member.replace('|=lock:ch:', '|=lock:ch:moved-'));
    expect(await a.backend.resize?.(name, 1, call)).toEqual({ status: 'set' });
    expect((await b.backend.attempt(wanted, true, call)).status).toBe('contended');
    expect((await b.backend.attempt(permits(1), true, call)).status).toBe('conflict');
  });

  it('is joined with fewer commands only while a check, or a whole enqueue, is not too long ago', async () => {
    await using a = participant(redis);
    const maxPollMs = 500;
    await using b = participant(redis, { maxPollMs });
    await b.openChannel();
    const enqueues: string[] = [];
    const send = b.port.send.bind(b.port);
    let fails = false;
    let checks = 0;
    b.port.send = (key, command) => {
      if (command[1] === scripts.acquire.sha1) enqueues.push(command[12] ?? '');
      if (command[1] !== scripts.check.sha1) return send(key, command);
      if (fails) return Promise.reject(new Error('LOADING'));
      return send(key, command).finally(() => (checks += 1));
    };
    const name = fresh();
    await a.take(name);
    const short = async () => {
      await b.queue(request(name));
      return enqueues.at(-1) === 'refreshed';
    };
    // Nothing is kept of a queue that has no waiter here any more.
    const first = request(name);
    await b.queue(first);
    await b.backend.abandon(first, call);
    expect(await short()).toBe(false);
    expect(await short()).toBe(true);
    // Checks renew the queue: an enqueue after them still relies on them.
    const seen = checks;
    await waitUntil(() => checks >= seen + 2, { what: 'two checks', everyMs: 1 });
    expect(await short()).toBe(true);
    // Checks that fail renew nothing, and an enqueue that relied on an earlier one renews nothing either.
    fails = true;
    const from = performance.now();
    while ((await short()) === true) {
      expect(performance.now() - from).toBeLessThan(3 * maxPollMs);
      await sleep(maxPollMs / 10);
    }
    // Nobody of this process waits for another lock.
    await a.take(`${name}-2`);
    await b.queue(request(`${name}-2`));
    expect(enqueues.at(-1)).not.toBe('refreshed');
  });

  it('counts a pushed grant from the last request that found it waiting, for its ttl', async () => {
    await using a = participant(redis);
    await using b = participant(redis);
    await b.openChannel();
    const name = fresh();
    const grant = await a.take(name);
    const before = performance.now();
    const { turn } = await b.queue(request(name));
    const after = performance.now();
    await a.backend.release(grant, call);
    const handed = await turn;
    expect(handed?.validForMs).toBe(30_000);
    expect(handed?.countedFrom).toBeGreaterThanOrEqual(before);
    expect(handed?.countedFrom).toBeLessThanOrEqual(after);
  });

  it('wakes a waiter of the same process before the release resolves', async () => {
    await using a = participant(redis);
    const name = fresh();
    const grant = await a.take(name);
    const events: string[] = [];
    const turn = (await a.queue(request(name))).turn.then(() => events.push('granted'));
    await a.backend
      .release(grant, call)
      .then(() => Promise.resolve())
      .then(() => events.push('released'));
    await turn;
    expect(events).toEqual(['granted', 'released']);
  });

  it('costs one request to enqueue and one to release, once the channel is open', async () => {
    await using proxy = await startProxy(redis);
    await using b = participant(proxy, { maxPollMs: 60_000 });
    await b.openChannel();
    const other = fresh();
    let grant = await b.take(other);
    proxy.resetCounts();
    const turns = [];
    for (let i = 0; i < 50; i++) turns.push((await b.queue(request(other))).turn);
    for (const turn of turns) {
      await b.backend.release(grant, call);
      grant = (await turn) as typeof grant;
    }
    await b.backend.release(grant, call);
    expect(proxy.requestCounts()['EVALSHA']).toBe(50 + 51);
    // The first holder found the lock free: where the server has a command of its own for the release, it was tried.
    expect(proxy.countRequests()).toBeLessThanOrEqual(50 + 51 + 1);
  });

  it('opens no connection and sends nothing more while nobody contends', async () => {
    await using proxy = await startProxy(redis);
    await using a = participant(proxy);
    await a.backend.release(await a.take(fresh()), call);
    proxy.resetCounts();
    for (let i = 0; i < 100; i++) await a.backend.release(await a.take(fresh()), call);
    expect(proxy.countRequests()).toBe(200);
    expect(proxy.connections()).toHaveLength(1);
  });
});

it('counts a hand-off in the reply to a release from its sending, however late the clock is read', async () => {
  await using who = participant(redis);
  const readings: number[] = [];
  // As if the process stopped after each reading of the clock.
  const now = (): number => {
    readings.push(performance.now() + 50 * readings.length);
    return readings.at(-1) as number;
  };
  const late: Call = { now, deadline: Number.POSITIVE_INFINITY };
  const held = await who.take('late');
  const waiter = request('late');
  await who.backend.attempt(waiter, true, late);
  const turn = who.backend.awaitTurn?.(waiter, late);
  const first = readings.length;
  await who.backend.release(held, late);
  expect((await turn)?.countedFrom).toBeLessThanOrEqual(readings[first] as number);
});
