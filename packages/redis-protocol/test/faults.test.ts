import { createLocks, type Lock } from '@locks/core';
import { call, type RedisServer, request, startRedis, startReplicated, waitUntil } from '@locks/test-servers';
import { fresh, redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { describe, expect, it, onTestFinished } from 'vitest';
import { participant } from './participant.ts';

useRedis();

describe('faults', () => {
  it('does not notice that the server forgot the scripts', async () => {
    await using a = participant(redis);
    const grant = await a.take(fresh());
    await redis.command('SCRIPT', 'FLUSH');
    expect(await a.backend.renew([{ grant, ttlMs: 30_000 }], call)).toEqual([{ status: 'held' }]);
    await redis.command('SCRIPT', 'FLUSH');
    expect(await a.backend.release(grant, call)).toBe('released');
    await redis.command('SCRIPT', 'FLUSH');
    const grants = await Promise.all(Array.from({ length: 20 }, () => a.take(fresh())));
    expect(new Set(grants.map(({ fencingToken }) => fencingToken)).size).toBeGreaterThan(0);
  });

  it('loses all leases when the server restarts empty, and forms the queue again in order', async () => {
    await using own = await startRedis();
    await using a = participant(own);
    const name = fresh();
    const grant = await a.take(name);
    const order: string[] = [];
    const first = (await a.queue(request(name))).turn.then((got) => (order.push('first'), got));
    const second = (await a.queue(request(name))).turn.then((got) => (order.push('second'), got));
    await own.restart();
    const got = await first;
    expect(await a.backend.renew([{ grant, ttlMs: 30_000 }], call)).toEqual([
      { status: 'lost', reason: expect.stringMatching(/taken-over|force-released/) },
    ]);
    if (got) await a.backend.release(got, call);
    expect((await second)?.fencingToken).toBeGreaterThan(grant.fencingToken as bigint);
    expect(order).toEqual(['first', 'second']);
  });

  it('a script that it may not send again, since the call is over, is a failure that passes', async () => {
    await using own = await startRedis();
    await using a = participant(own);
    // The layout is known, so that the next attempt sends its script at once.
    await a.take(fresh());
    await own.command('SCRIPT', 'FLUSH');
    const over = { ...call, deadline: performance.now() - 1 };
    const error: unknown = await a.backend
      .attempt(request(fresh()), true, over)
      .catch((reason: unknown) => reason);
    expect(String(error)).toMatch(/NOSCRIPT/);
    expect(a.backend.isRetryable(error)).toBe(true);
  });

  it('survives an open MULTI of the application when a lock is handed to a waiter that it does not know', async () => {
    await using a = participant(redis);
    await a.openChannel();
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.on('unhandledRejection', note);
    onTestFinished(() => void process.off('unhandledRejection', note));
    const listening = (await redis.command('PUBSUB', 'CHANNELS', 'lock:ch:*')) as string[];
    await a.client.call('MULTI');
    for (const channel of listening)
      await redis.command('PUBLISH', channel, `granted unknown 5 lock::${fresh()}`);
    await waitUntil(async () => /multi=[1-9]/.test(String(await redis.command('CLIENT', 'LIST'))), {
      what: 'an abandon in the MULTI',
    });
    // The reply to it comes before this one.
    await a.client.call('EXEC');
    expect(unhandled).toEqual([]);
    await a.take(fresh());
  });

  it.each([
    ['a key of another type', ['RPUSH', 'lock::typed', 'x'], /WRONGTYPE/, false],
    ['a full memory', ['CONFIG', 'SET', 'maxmemory', '1'], /OOM/, false],
  ] as const)('reports %s, and does not repeat the call', async (_, command, message, retryable) => {
    await using own = await startRedis();
    await using a = participant(own);
    await own.command(command[0], ...command.slice(1));
    const error: unknown = await a.backend
      .attempt(request('typed'), true, call)
      .catch((reason: unknown) => reason);
    expect(String(error)).toMatch(message);
    expect(a.backend.isRetryable(error)).toBe(retryable);
  });

  it('reports a read-only replica as a failure that passes', async () => {
    await using replicated = await startReplicated();
    await using a = participant(replicated.replicas[0] as RedisServer);
    const error: unknown = await a.backend
      .attempt(request('x'), true, call)
      .catch((reason: unknown) => reason);
    expect(String(error)).toMatch(/READONLY/);
    expect(a.backend.isRetryable(error)).toBe(true);
  });
});

describe('a server whose memory is full', () => {
  it.each([
    ['a writer behind a reader', ['readWriteLock', 'read'], ['readWriteLock', 'write']],
    ['a reader behind a writer', ['readWriteLock', 'write'], ['readWriteLock', 'read']],
    ['an exclusive lock behind another', ['lock'], ['lock']],
  ] as const)('lets who waits go on: %s', async (_, held, wanted) => {
    await using own = await startRedis();
    await using a = participant(own, { maxPollMs: 100 });
    const locks = createLocks(a.backend, { ttlMs: 1_500, waitMs: 30_000 });
    const lockOf = ([kind, mode]: typeof held): Lock =>
      kind === 'lock' ? locks.lock('x') : locks.readWriteLock('x')[mode];
    const holder = await lockOf(held).acquire();
    const waiting = lockOf(wanted).acquire();
    await waitUntil(async () => (await locks.inspect('x')).waiters.length > 0, { what: 'a waiter' });
    await own.command('CONFIG', 'SET', 'maxmemory', '1');
    const checks = async () =>
      /cmdstat_evalsha:calls=(\d+)/.exec(String(await own.command('INFO', 'commandstats')));
    const before = Number((await checks())?.[1]);
    // Longer than the ttl: who waits looks when the share could have ended without its renewals.
    await waitUntil(async () => Number((await checks())?.[1]) > before + 25, { what: 'checks and renewals' });
    expect((await locks.inspect('x')).waiters).toHaveLength(1);
    await holder.release();
    await (await waiting).release();
    await locks.close();
  });
});

describe('what operators see', () => {
  it('lists what is held and waited for below a prefix, by its name', async () => {
    await using own = await startRedis();
    await using a = participant(own);
    const names = ['shop:1', 'shop:{2}', 'shop:%7B3', 'shop:*', 'shop:?', 'other', 'shop:100%'];
    for (const name of names) await a.take(name);
    await own.command('SET', 'lock::shop:stranger', 'python');
    await own.command('RPUSH', 'lock::shop:list', 'no lock');
    await a.openChannel();
    await a.take('shop:free');
    await a.queue(request('shop:free'));
    await own.command('DEL', 'lock::shop:free');
    const seen = async (prefix: string) => {
      const found: string[] = [];
      for await (const state of a.backend.list?.(prefix, call) ?? []) found.push(state.name);
      return found.sort();
    };
    expect(await seen('shop:')).toEqual(
      [...names.filter((name) => name.startsWith('shop:')), 'shop:free', 'shop:stranger'].sort(),
    );
    expect(await seen('shop:{')).toEqual(['shop:{2}']);
    expect(await seen('shop:%')).toEqual(['shop:%7B3']);
    expect(await seen('shop:*')).toEqual(['shop:*']);
    expect(await seen('none')).toEqual([]);
    expect(await seen('')).toHaveLength(9);
  });

  it("shows a stranger's lock, and can end it", async () => {
    await using a = participant(redis);
    const name = fresh();
    await redis.command('SET', `lock::${name}`, 'python', 'PX', 5000);
    const [holder] = (await a.backend.inspect(name, call)).holders;
    expect(holder).toMatchObject({ acquisitionId: 'python', mode: { kind: 'exclusive' } });
    expect(holder?.expiresInMs).toBeLessThanOrEqual(5000);
    expect(await a.backend.forceRelease?.(name, 'other', call)).toEqual([]);
    expect(await a.backend.forceRelease?.(name, 'python', call)).toMatchObject([{ acquisitionId: 'python' }]);
    await a.take(name);
  });

  it('warns once of an eviction policy that may take locks away', async () => {
    await using own = await startRedis({
      args: ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'],
    });
    const warnings: Error[] = [];
    const note = (warning: Error) => void warnings.push(warning);
    process.on('warning', note);
    await using a = participant(own);
    await a.take('x');
    await a.queue(request('x'));
    await a.queue(request('x'));
    await waitUntil(() => warnings.length > 0, { what: 'the warning' });
    process.off('warning', note);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatchObject({ code: 'LOCKS_REDIS_EVICTION' });
  });
});

describe('minReplicas', () => {
  it('grants what enough replicas have, and releases what they do not', async () => {
    await using replicated = await startReplicated({ replicas: 1 });
    const [replica] = replicated.replicas as [RedisServer];
    await using a = participant(replicated.master, { minReplicas: 1, replicaTimeoutMs: 1000 });
    const grants = await Promise.all(Array.from({ length: 20 }, () => a.take(fresh())));
    expect(grants).toHaveLength(20);
    const held = await a.take('replicated');
    const { turn } = await a.queue(request('replicated'));
    await replica.pause();
    const name = fresh();
    const error: unknown = await a.take(name).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: 'ReplicationError', acknowledged: 0, wanted: 1 });
    expect(String(error)).toMatch(/0 of the wanted 1 replicas/);
    expect((await a.backend.inspect(name, call)).holders).toEqual([]);
    await a.backend.release(held, call);
    await expect(turn).rejects.toMatchObject({ name: 'ReplicationError' });
    expect((await a.backend.inspect('replicated', call)).holders).toEqual([]);
    replica.resume();
    await a.backend.release(await a.take(name), call);
  });
});
