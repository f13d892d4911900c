import { execFile } from 'node:child_process';
import type { EventEmitter } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createLocks } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call, granted, type Participant, request } from '../participant.ts';
import { startProxy } from '../proxy/start-proxy.ts';
import type { RedisCluster } from '../redis/redis-cluster.ts';
import type { RedisServer } from '../redis/redis-server.ts';
import { startCluster } from '../redis/start-cluster.ts';
import { startRedis } from '../redis/start-redis.ts';
import { waitUntil } from '../wait-until.ts';

interface At {
  readonly port: number;
}

/** The clients of one library, for the tests that every library's adapter passes. */
export interface ClientLibrary {
  open(server: At): Promise<Participant>;
  openCluster(roots: readonly At[]): Promise<Participant>;
  /** A client that ends when its connection is lost. */
  openBrittle(server: At): Promise<Participant>;
  /** How a cluster client is made, as the refusal of another one says. */
  readonly clusterCall: string;
}

/** @param script - a process that waits for a lock once and writes `quit` after it has ended its client: see `contendOnce` */
export function testEndOfProcess(script: URL): void {
  let redis: RedisServer;
  let cluster: RedisCluster;

  beforeAll(async () => {
    [redis, cluster] = await Promise.all([startRedis(), startCluster({ replicasPerMaster: 0 })]);
  });
  afterAll(() => Promise.all([redis.stop(), cluster.stop()]));

  it.each(['single', 'cluster', 'replicas'])(
    'a process whose locks stay open ends with its client (%s)',
    async (kind) => {
      const nodes = kind === 'cluster' ? cluster.nodes : [redis];
      const ports = nodes.map(({ port }) => port).join();
      // A process that does not end is killed, which rejects.
      const ended = await promisify(execFile)(process.execPath, [fileURLToPath(script), kind, ports], {
        timeout: 20_000,
      });
      expect(ended.stdout).toBe('quit');
    },
  );
}

/** What a call rejects with while nobody listens at a port. */
export const cannotConnect = ({ port }: At) => ({
  code: 'LOCK_BACKEND',
  message: expect.stringContaining(`ECONNREFUSED 127.0.0.1:${port}`),
  cause: expect.objectContaining({ code: 'ECONNREFUSED' }),
});

export function testUnreachable({ open, openCluster, openBrittle, clusterCall }: ClientLibrary): void {
  describe('a server that is away', () => {
    it('is named with the error of the connection, also by a wait that was contended before', async () => {
      const own = await startRedis();
      await using client = await open(own);
      const locks = createLocks(client.backend);
      await locks.lock('a').acquire();
      const refused = cannotConnect(own);
      const waiting = expect(locks.lock('a').acquire({ waitMs: 3_000 })).rejects.toMatchObject(refused);
      await waitUntil(async () => (await locks.inspect('a')).waiters.length > 0, { what: 'a waiter' });
      await own.stop();
      await waiting;
      await expect(locks.lock('b').acquire({ waitMs: 300 })).rejects.toMatchObject(refused);
      await expect(locks.lock('b').tryAcquire()).rejects.toMatchObject(refused);
      await expect(locks.ping({ answerMs: 300 })).rejects.toMatchObject(refused);
      await locks.close();
    });

    it('ends a client that does not connect again, which says why', async () => {
      const own = await startRedis();
      await using client = await openBrittle(own);
      const locks = createLocks(client.backend);
      await own.stop();
      const errorOf = (): Promise<unknown> =>
        locks
          .lock('a')
          .acquire({ waitMs: 300 })
          .catch((error: unknown) => error);
      await waitUntil(async () => /gave up connecting, and has ended/.test(String(await errorOf())), {
        what: 'the end of the client',
      });
      expect(await errorOf()).toMatchObject(cannotConnect(own));
      await locks.close();
    });
  });

  describe('a cluster of which the master of a lock is away', () => {
    it('ends a wait as a failure of the store', async () => {
      await using cluster = await startCluster({ replicasPerMaster: 0 });
      await using client = await openCluster(cluster.roots);
      const locks = createLocks(client.backend);
      await locks.lock('a').acquire();
      const waiting = expect(locks.lock('a').acquire({ waitMs: 4_000 })).rejects.toMatchObject({
        code: 'LOCK_BACKEND',
      });
      await waitUntil(async () => (await locks.inspect('a')).waiters.length > 0, { what: 'a waiter' });
      await (await cluster.slotOwner(cluster.slotOf('lock::a'))).stop();
      await waiting;
      await locks.close();
    });
  });

  describe('a client for one server on a node of a cluster', () => {
    it('is refused at once by every call, which says which client to pass', async () => {
      await using cluster = await startCluster({ replicasPerMaster: 0 });
      await using client = await open(cluster.nodes[0] ?? { port: 0 });
      const locks = createLocks(client.backend);
      const wrongClient = { code: 'LOCK_INVALID_ARGUMENT', message: expect.stringContaining(clusterCall) };
      const names = Array.from({ length: 8 }, (_, index) => `name-${index}`);
      const elsewhere = names.filter((name) => cluster.slotOf(`lock::${name}`) > 16_384 / 3);
      const [name = ''] = elsewhere;
      for (const refused of [
        () => locks.lock(name).acquire(),
        () => locks.lock(name).tryAcquire(),
        () => locks.all(elsewhere.map((each) => locks.lock(each))).acquire(),
        () => locks.semaphore(name, 2).acquire(),
        () => locks.inspect(name),
        () => locks.forceRelease(name),
        () => locks.list()[Symbol.asyncIterator]().next(),
      ]) {
        await expect(refused()).rejects.toMatchObject(wrongClient);
      }
      await locks.close();
    });
  });
}

/** Refusals of what is no usable client, with what the message names. */
export function testRefusedClients(
  makeBackend: (client: never) => LockBackend,
  clients: readonly (readonly [what: string, client: unknown, message: RegExp])[],
): void {
  it.each(clients)('is refused at once: %s', (_, client, message) => {
    expect(() => makeBackend(client as never)).toThrow(
      expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT', message: expect.stringMatching(message) }),
    );
  });
}

/** Takes, renews, hands off, lists and releases: what a client with unusual options must be able to do. */
export async function useEveryReply(client: Participant, name: string): Promise<void> {
  const { backend } = client;
  const grant = await client.take(name);
  expect(typeof grant.fencingToken).toBe('bigint');
  const { turn } = await client.queue(request(name));
  expect(await backend.renew([{ grant, ttlMs: 20_000 }], call)).toEqual([{ status: 'held' }]);
  await backend.release(grant, call);
  const next = await turn;
  expect(next?.fencingToken).toBeGreaterThan(grant.fencingToken as bigint);
  const found = [];
  for await (const state of backend.list?.(name, call) ?? []) found.push(state.name);
  expect(found).toEqual([name]);
  if (next) expect(await backend.release(next, call)).toBe('released');
}

/** A client with the key prefix `app:`, and one without whose locks have the prefix `app:lock:`, meet at one key. */
export async function meetBehindKeyPrefix(
  redis: RedisServer,
  prefixed: Participant,
  plain: Participant,
): Promise<void> {
  const grant = await prefixed.take('prefixed');
  expect(await redis.command('EXISTS', 'app:lock::prefixed')).toBe(1);
  const { turn } = await plain.queue(request('prefixed'));
  await prefixed.backend.release(grant, call);
  expect(await turn).toBeDefined();
}

/** Clients of two libraries wait in one queue, in order, and exclude each other. */
export async function shareOneQueue(a: Participant, b: Participant): Promise<void> {
  const name = 'a lock of two libraries';
  let grant = await a.take(name);
  let holder = a;
  expect(await b.backend.attempt(request(name), false, call)).toEqual({ status: 'contended' });
  const order: number[] = [];
  const turns = [];
  for (let index = 0; index < 20; index++) {
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
}

/** A lock that nobody else wants costs two requests on one connection. */
export async function expectTwoRequests(
  redis: RedisServer,
  open: (server: At) => Promise<Participant>,
): Promise<void> {
  await using proxy = await startProxy(redis);
  await using a = await open(proxy);
  const use = async (index: number) => a.backend.release(await a.take(`undisputed-${index}`), call);
  await use(0);
  proxy.resetCounts();
  for (let index = 1; index <= 50; index++) await use(index);
  expect(proxy.countRequests()).toBe(100);
  expect(proxy.connections()).toHaveLength(1);
}

/** An attempt whose answer is lost with its connection is worth repeating, and then has the grant. Returns its error. */
export async function loseAnswerOfAttempt(
  redis: RedisServer,
  open: (server: At) => Promise<Participant>,
): Promise<unknown> {
  await using proxy = await startProxy(redis);
  await using a = await open(proxy);
  // The server knows the scripts then.
  await a.backend.release(await a.take('known'), call);
  proxy.loseReplies(({ command }) => command === 'EVALSHA', { times: 1, thenCut: true });
  const wanted = request('without an answer');
  const error: unknown = await a.backend.attempt(wanted, true, call).catch((reason: unknown) => reason);
  expect(a.backend.isRetryable(error)).toBe(true);
  granted(await a.backend.attempt(wanted, true, call));
  return error;
}

/** Makes many backends on one client, of which all but one wait. */
export async function expectOneListener(
  client: EventEmitter,
  count: number,
  makeBackend: () => LockBackend,
): Promise<void> {
  const counts = (): Map<string | symbol, number> =>
    new Map(client.eventNames().map((event) => [event, client.listenerCount(event)]));
  const before = counts();
  const backends = Array.from({ length: count }, makeBackend);
  const locks = backends.map((backend) => createLocks(backend));
  const name = 'a lock of many backends';
  const [first, ...others] = locks;
  const lease = await first?.lock(name).acquire();
  const waiting = others.map((each) => each.lock(name).acquire({ waitMs: 30_000 }));
  await waitUntil(async () => (await first?.inspect(name))?.waiters.length === others.length, {
    what: 'the waiters',
  });
  for (const [event, listeners] of counts())
    expect(listeners, String(event)).toBeLessThanOrEqual((before.get(event) ?? 0) + 1);
  await lease?.release();
  for (const next of waiting) await (await next).release();
  await Promise.all(locks.map((each) => each.close()));
  expect(counts()).toEqual(before);
}
