import { createLocks } from '@locks/core';
import type { Attempt } from '@locks/core/backend';
import {
  call,
  granted,
  type RedisServer,
  request,
  type RestBridge,
  startProxy,
  startRedis,
  startRestBridge,
} from '@locks/test-servers';
import { shareOneQueue, testRefusedClients } from '@locks/test-servers/redis-clients/client-tests';
import { endByThemselves, keepNewestEntry } from '@locks/test-servers/redis-clients/store-tests';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { upstashBackend, upstashSlots, upstashResults } from '../src/index.ts';
import { ioredisParticipant, upstashParticipant } from './setup.ts';

let redis: RedisServer;
let bridge: RestBridge;
let count = 0;
const fresh = () => `resource-${++count}`;

beforeAll(async () => {
  redis = await startRedis();
  bridge = await startRestBridge(redis);
});
afterAll(async () => {
  await bridge.stop();
  await redis.stop();
});

describe('what is not the address of a database', () => {
  testRefusedClients(upstashBackend, [
    ['undefined', undefined, /url/],
    ['no url', { token: 'x' }, /https:\/\//],
    ['an address of another protocol', { url: 'redis://localhost', token: 'x' }, /https:\/\//],
    ['no token', { url: 'https://x.upstash.io' }, /token/],
    ['a promise', Promise.resolve({}), /await/],
    ['a client', new Redis({ lazyConnect: true }), /\{ url, token \}/],
    ['a misspelt option', { url: 'https://x.upstash.io', token: 'x', tokn: 'a' }, /Did you mean token/],
    [
      'a prefix in the first argument',
      { url: 'https://x.upstash.io', token: 'x', prefix: 'a:' },
      /second argument/,
    ],
  ]);

  it.each([
    [{ prefx: 'a' }, /prefix/],
    [{ prefix: '{a}' }, /prefix/],
    [{ token: 'x' }, /first argument/],
    [null, /options/],
  ])('nor are these options: %j', (options, message) => {
    const database = { url: 'https://x.upstash.io', token: 'x' };
    expect(() => upstashBackend(database, options as object)).toThrow(message);
  });

  it('never shows the token', () => {
    expect(() => upstashBackend({ url: 'x', token: 'secret' })).not.toThrow(/secret/);
  });
});

describe('requests', () => {
  it('are two for a lock nobody else wants', async () => {
    await using a = upstashParticipant(bridge);
    await a.backend.release(await a.take(fresh()), call);
    const before = bridge.requests;
    for (let i = 0; i < 20; i++) await a.backend.release(await a.take(fresh()), call);
    expect(bridge.requests - before).toBe(40);
  });

  it('of one turn of the event loop go together', async () => {
    await using a = upstashParticipant(bridge);
    await a.backend.release(await a.take(fresh()), call);
    const [commands, requests] = [bridge.commands, bridge.requests];
    await Promise.all(Array.from({ length: 150 }, () => a.take(fresh())));
    expect(bridge.commands - commands).toBe(150);
    expect(bridge.requests - requests).toBe(2);
  });

  it('are one an interval for a process that waits, whatever the number of its waiters and locks', async () => {
    await using holder = ioredisParticipant(redis);
    await using a = upstashParticipant(bridge, { maxPollMs: 100 });
    const names = Array.from({ length: 10 }, fresh);
    // Holds end one after the other, between two checks: none of these ends is asked for.
    await Promise.all(names.map((name, at) => holder.take(name, 1_030 + 70 * at)));
    await Promise.all(names.flatMap((name) => Array.from({ length: 5 }, () => a.queue(request(name)))));
    const before = bridge.commands;
    const startedAt = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    const intervals = (performance.now() - startedAt) / 100;
    expect(bridge.commands - before).toBeGreaterThan(2);
    expect(bridge.commands - before).toBeLessThanOrEqual(Math.ceil(intervals) + 1);
  });

  it('stop with the last waiter, and hold nothing open', async () => {
    await using holder = ioredisParticipant(redis);
    await using a = upstashParticipant(bridge, { maxPollMs: 50 });
    const name = fresh();
    const grant = await holder.take(name);
    const { turn } = await a.queue(request(name));
    await holder.backend.release(grant, call);
    const got = await turn;
    if (got === undefined) throw new Error('no grant');
    await a.backend.release(got, call);
    const before = bridge.commands;
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(bridge.commands).toBe(before);
  });

  it('without an answer are reported as such, and the same attempt then has the grant', async () => {
    await using proxy = await startProxy(bridge, { protocol: 'raw' });
    await using a = upstashParticipant({ url: `http://127.0.0.1:${proxy.port}`, token: bridge.token });
    await a.backend.release(await a.take(fresh()), call);
    proxy.cutAtNextReply();
    const wanted = request(fresh());
    const attempt = () => a.backend.attempt(wanted, true, call).catch((reason: unknown) => reason);
    let answer: unknown = await attempt();
    expect(answer).toMatchObject({ name: 'RestRequestError' });
    // Each connection that was open loses one answer.
    while (a.backend.isRetryable(answer)) answer = await attempt();
    granted(answer as Attempt);
  });

  it('with a wrong token fail at once', async () => {
    const locks = createLocks(upstashBackend({ url: bridge.url, token: 'wrong' }));
    await expect(locks.lock('x').acquire({ waitMs: 5_000 })).rejects.toMatchObject({
      code: 'LOCK_BACKEND',
      message: expect.stringContaining('WRONGPASS'),
    });
    await locks.close();
  });
});

describe('a process on the REST API and one on ioredis', () => {
  it('share one queue, in order, and exclude each other', async () => {
    await using a = upstashParticipant(bridge, { maxPollMs: 50 });
    await using b = ioredisParticipant(redis);
    await shareOneQueue(a, b);
  });
});

describe('records and results', () => {
  it('keep the newest entry of each job', async () => {
    await keepNewestEntry(upstashSlots({ url: bridge.url, token: bridge.token }));
  });

  it('end by themselves, and refuse a lower token after that', async () => {
    await endByThemselves(upstashResults({ url: bridge.url, token: bridge.token }));
  });

  it('are refused a client in place of the address', () => {
    const client = new Redis({ lazyConnect: true }) as unknown as Parameters<typeof upstashSlots>[0];
    expect(() => upstashSlots(client)).toThrow(/\{ url, token \}/);
    expect(() => upstashResults(client)).toThrow(/\{ url, token \}/);
  });
});
