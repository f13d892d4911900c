import { createLocks } from '@locks/core';
import {
  call,
  granted,
  type RedisServer,
  request,
  type RestBridge,
  startProxy,
  startRedis,
  startRestBridge,
  waitUntil,
} from '@locks/test-servers';
import { testRefusedClients } from '@locks/test-servers/redis-clients/client-tests';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { upstashBackend, upstashRecord, upstashResults } from '../src/index.ts';
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
    ['a misspelt option', { url: 'https://x.upstash.io', token: 'x', prefx: 'a' }, /prefix/],
    ['a prefix with braces', { url: 'https://x.upstash.io', token: 'x', prefix: '{a}' }, /prefix/],
  ]);

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
    await using a = upstashParticipant(bridge, { checkIntervalMs: 100 });
    const names = Array.from({ length: 10 }, fresh);
    // Holds end one after the other, between two checks: none of these ends is asked for.
    await Promise.all(names.map((name, at) => holder.take(name, 330 + 70 * at)));
    for (const name of names) for (let i = 0; i < 5; i++) await a.queue(request(name));
    const before = bridge.commands;
    const startedAt = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const intervals = (performance.now() - startedAt) / 100;
    expect(bridge.commands - before).toBeGreaterThan(2);
    expect(bridge.commands - before).toBeLessThanOrEqual(Math.ceil(intervals) + 1);
  });

  it('stop with the last waiter, and hold nothing open', async () => {
    await using holder = ioredisParticipant(redis);
    await using a = upstashParticipant(bridge, { checkIntervalMs: 50 });
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
    const error: unknown = await a.backend.attempt(wanted, true, call).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: 'RestRequestError' });
    expect(a.backend.isRetryable(error)).toBe(true);
    granted(await a.backend.attempt(wanted, true, call));
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
    await using a = upstashParticipant(bridge, { checkIntervalMs: 50 });
    await using b = ioredisParticipant(redis);
    const name = fresh();
    let grant = await a.take(name);
    let holder = a;
    expect(await b.backend.attempt(request(name), false, call)).toEqual({ status: 'contended' });
    const order: number[] = [];
    const turns = [];
    for (let index = 0; index < 12; index++) {
      const who = index % 3 === 0 ? a : b;
      const { turn } = await who.queue(request(name));
      turns.push({ who, turn: turn.then((got) => (order.push(index), got)) });
    }
    for (const { who, turn } of turns) {
      expect(await holder.backend.release(grant, call)).toBe('released');
      const next = await turn;
      if (next === undefined) throw new Error('no grant');
      expect(next.fencingToken).toBeGreaterThan(grant.fencingToken as bigint);
      [grant, holder] = [next, who];
    }
    expect(await holder.backend.release(grant, call)).toBe('released');
    expect(order).toEqual(turns.map((_, index) => index));
  });
});

describe('records and results', () => {
  const TOKEN = 2n ** 62n + 1n;

  it('keep the newest entry of each job', async () => {
    const record = upstashRecord({ url: bridge.url, token: bridge.token });
    const entry = (token: bigint) =>
      ({ slot: `of ${token}`, state: 'done', token, label: 'é', at: 1_900_000_000_000 }) as const;
    expect(await record.read('a')).toBeUndefined();
    expect(await record.write('a', entry(TOKEN))).toBe(true);
    await expect(record.write('a', entry(TOKEN - 1n))).rejects.toMatchObject({ code: 'LOCK_LOST' });
    expect(await record.read('a')).toEqual(entry(TOKEN));
  });

  it('end by themselves, and refuse a lower token after that', async () => {
    const results = upstashResults({ url: bridge.url, token: bridge.token });
    expect((await results.get('a')) ?? undefined).toBeUndefined();
    await results.set('a', 'é', TOKEN, 60_000);
    expect(await results.get('a')).toBe('é');
    await results.set('a', 'brief', TOKEN, 50);
    await waitUntil(async () => !(await results.get('a')), { what: 'the end of the result' });
    await expect(results.set('a', 'late', TOKEN - 1n, 60_000)).rejects.toMatchObject({ code: 'LOCK_LOST' });
  });

  it('are refused a client in place of the address', () => {
    const client = new Redis({ lazyConnect: true }) as unknown as Parameters<typeof upstashRecord>[0];
    expect(() => upstashRecord(client)).toThrow(/\{ url, token \}/);
    expect(() => upstashResults(client)).toThrow(/\{ url, token \}/);
  });
});
