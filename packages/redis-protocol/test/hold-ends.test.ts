import type { Grant, LockMode } from '@locks/core/backend';
import { call, request, waitUntil } from '@locks/test-servers';
import { fresh, redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { describe, expect, it } from 'vitest';
import { participant } from './participant.ts';

const SHARED: LockMode = { kind: 'shared' };
/** So rarely that no regular check comes during a test. */
const RARELY = { maxPollMs: 60_000 };

useRedis();

describe('a process looks when a hold that it waits for can end by itself:', () => {
  it('the lease of a holder that releases nothing', async () => {
    await using a = participant(redis);
    await using b = participant(redis, RARELY);
    const name = fresh();
    await a.take(name, 300);
    const { turn } = await b.queue(request(name));
    expect(await turn).toBeDefined();
  });

  it('a lease that was renewed meanwhile, at its new end', async () => {
    await using a = participant(redis);
    await using b = participant(redis, RARELY);
    const name = fresh();
    const grant = await a.take(name, 400);
    const { turn } = await b.queue(request(name));
    const renewedAt = performance.now();
    await a.backend.renew([{ grant, ttlMs: 1_000 }], call);
    expect(await turn).toBeDefined();
    expect(performance.now() - renewedAt).toBeGreaterThan(995);
  });

  it('a hold that ends earlier than the one before it', async () => {
    await using a = participant(redis);
    await using b = participant(redis, RARELY);
    // The check that follows the opening of a channel would tell the end, too.
    await b.openChannel();
    const name = fresh();
    await a.take(name, 50_000);
    const waiter = request(name);
    const { turn } = await b.queue(waiter);
    await a.backend.attempt({ ...request(name, 500), steal: true }, true, call);
    const from = performance.now();
    // A repeated attempt asks for the end of the hold.
    await b.backend.attempt(waiter, true, call);
    expect(await turn).toBeDefined();
    expect(performance.now() - from).toBeLessThan(20_000);
  });

  it('the lock of a stranger', async () => {
    await using b = participant(redis, RARELY);
    const name = fresh();
    await redis.command('SET', `lock::${name}`, 'theirs', 'PX', 300);
    const { turn } = await b.queue(request(name));
    expect(await turn).toBeDefined();
  });

  it('the last of several shares', async () => {
    await using a = participant(redis);
    await using b = participant(redis, RARELY);
    const name = fresh();
    for (const ttlMs of [300, 600])
      await a.backend.attempt({ ...request(name, ttlMs), mode: SHARED }, false, call);
    const { turn } = await b.queue(request(name));
    expect(await turn).toBeDefined();
  });
});

it('of many waiters of one name one looks', async () => {
  await using a = participant(redis);
  await using b = participant(redis, RARELY);
  await b.openChannel();
  const name = fresh();
  await a.take(name, 2_000);
  const waiters = Array.from({ length: 1_000 }, () => request(name, 60_000));
  const attempts = await Promise.all(waiters.map((waiter) => b.backend.attempt(waiter, true, call)));
  expect(new Set(attempts.map(({ status }) => status))).toEqual(new Set(['contended']));
  const evaluated = async () =>
    Number(/cmdstat_evalsha:calls=(\d+)/.exec(String(await redis.command('INFO', 'commandstats')))?.[1]);
  const before = await evaluated();
  const [first] = waiters;
  expect(await b.backend.awaitTurn?.(first as (typeof waiters)[0], call)).toBeDefined();
  // A second look may be needed where the clocks of the two processes differ by a millisecond.
  expect((await evaluated()) - before).toBeLessThanOrEqual(3);
});

it('waiters that the look of another waiter served hear of it at once', async () => {
  await using a = participant(redis);
  await using b = participant(redis, RARELY);
  await b.openChannel();
  const name = fresh();
  await a.take(name, 1_000);
  const turns: Promise<Grant | undefined>[] = [];
  for (let reader = 0; reader < 3; reader += 1) {
    const { turn } = await b.queue({ ...request(name), mode: SHARED });
    turns.push(turn as Promise<Grant | undefined>);
  }
  const times = await Promise.all(turns.map((turn) => turn.then(() => performance.now())));
  // The next look would find them.
  expect(Math.max(...times) - Math.min(...times)).toBeLessThan(700);
});

it('nothing is looked at once nobody waits', async () => {
  await using a = participant(redis);
  await using b = participant(redis, RARELY);
  const name = fresh();
  await a.take(name, 300);
  const waiter = request(name);
  await b.backend.attempt(waiter, true, call);
  await b.backend.abandon(waiter, call);
  const sent: string[] = [];
  const send = b.port.send.bind(b.port);
  b.port.send = (key, command) => {
    sent.push(command[0]);
    return send(key, command);
  };
  const from = performance.now();
  await waitUntil(() => performance.now() - from > 400, { what: 'the end of the lease' });
  expect(sent).toEqual([]);
});
