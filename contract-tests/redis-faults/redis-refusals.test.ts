import { createLocks, type LockError } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import { redisBackend as ioredisBackend } from '@locks/redis-ioredis';
import { redisBackend as nodeRedisBackend } from '@locks/redis-node';
import { type RedisServer, sendCommands, startReplicated, waitUntil } from '@locks/test-servers';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { describe, expect, it } from 'vitest';
import { type Library, libraries } from '../src/harnesses/redis/open-client.ts';
import { failure, untilWaiting } from '../src/fault-lab/observe.ts';
import Lab, { untilListening } from './lab.ts';

const SLACK_MS = 1_500;

/** Every command of ours, and no channel: what a user has by default since Redis 7. */
const NO_CHANNELS = ['on', '>secret', '~*', 'resetchannels', '+@all'];

async function urlOfUser(redis: RedisServer, name: string, rules: readonly string[]): Promise<string> {
  await redis.command('ACL', 'SETUSER', name, ...rules);
  return `redis://${name}:secret@${redis.host}:${redis.port}`;
}

describe.concurrent.each(libraries)('refused or forgotten, with %s', { timeout: 40_000 }, (library) => {
  it('out of memory: an acquire says so; renewal, hand-off and release still work', async () => {
    await using lab = new Lab(library);
    const redis = await lab.server({ args: ['--maxmemory-policy', 'noeviction'] });
    const [holder, waiter] = [await lab.locks(redis), await lab.locks(redis)];
    const [handed, single] = [await holder.lock('handed').acquire(), await holder.lock('single').acquire()];
    const entered = waiter.lock('handed').acquire({ ttlMs: 20_000 });
    await untilListening(redis, 'handed');
    // Whatever it uses is too much now.
    await redis.command('CONFIG', 'SET', 'maxmemory', 1);
    const refused = await failure(holder.lock('b').acquire({ waitMs: 5_000 }));
    expect(refused).toMatchObject({
      code: 'LOCK_BACKEND',
      lockName: 'b',
      cause: expect.objectContaining({ message: expect.stringMatching(/^OOM/) }),
    });
    expect(await failure(holder.lock('b').tryAcquire())).toMatchObject({ code: 'LOCK_BACKEND' });
    await handed.renew(25_000);
    expect(Number(await redis.command('PTTL', 'lock::handed'))).toBeGreaterThan(20_000);
    const releasedAt = performance.now();
    await handed.release();
    const next = await entered;
    expect(performance.now() - releasedAt).toBeLessThan(SLACK_MS);
    await next.renew();
    await next.release();
    await single.release();
    expect(await redis.command('EXISTS', 'lock::handed', 'lock::single', 'lock::b')).toBe(0);
  });

  it('a read-only replica as the client: LOCK_BACKEND with READONLY, and no lease', async () => {
    await using lab = new Lab(library);
    const { replicas, stop } = await startReplicated();
    lab.defer(stop);
    const [replica] = replicas as [RedisServer];
    const locks = await lab.locks(replica);
    const cause = expect.objectContaining({ message: expect.stringMatching(/READONLY/) });
    expect(await failure(locks.lock('a').tryAcquire())).toMatchObject({ code: 'LOCK_BACKEND', cause });
    const startedAt = performance.now();
    expect(await failure(locks.lock('a').acquire({ waitMs: 600 }))).toMatchObject({
      code: 'LOCK_BACKEND',
      cause,
    });
    expect(performance.now() - startedAt).toBeLessThan(600 + SLACK_MS);
    expect(await replica.command('DBSIZE')).toBe(0);
  });

  it('a key of another type where the lock would be: LOCK_BACKEND, and the key is untouched', async () => {
    await using lab = new Lab(library);
    const redis = await lab.server();
    const locks = await lab.locks(redis);
    await redis.command('RPUSH', 'lock::a', 'one', 'two');
    const cause = expect.objectContaining({ message: expect.stringMatching(/WRONGTYPE/) });
    expect(await failure(locks.lock('a').acquire())).toMatchObject({ code: 'LOCK_BACKEND', cause });
    expect(await failure(locks.lock('a').tryAcquire())).toMatchObject({ code: 'LOCK_BACKEND', cause });
    expect(await failure(locks.inspect('a'))).toMatchObject({ code: 'LOCK_BACKEND', cause });
    expect(await failure(locks.forceRelease('a'))).toMatchObject({ code: 'LOCK_BACKEND', cause });
    expect(await redis.command('LRANGE', 'lock::a', 0, -1)).toEqual(['one', 'two']);
    expect(await redis.command('PTTL', 'lock::a')).toBe(-1);
  });

  it('a key that became another type under a lease: the loss is reported at the renewal, and the key untouched', async () => {
    await using lab = new Lab(library);
    const redis = await lab.server();
    const locks = await lab.locks(redis);
    const lease = await locks.lock('a').acquire();
    await redis.command('DEL', 'lock::a');
    await redis.command('RPUSH', 'lock::a', 'one');
    expect(await failure(lease.renew())).toMatchObject({ code: 'LOCK_LOST', reason: 'taken-over' });
    expect(lease.signal.aborted).toBe(true);
    expect(await failure(lease.release())).toMatchObject({ code: 'LOCK_LOST' });
    expect(await redis.command('LRANGE', 'lock::a', 0, -1)).toEqual(['one']);
  });

  it('a user without the right to the keys: LOCK_BACKEND with NOPERM at once', async () => {
    await using lab = new Lab(library);
    const redis = await lab.server();
    const url = await urlOfUser(redis, 'other', ['on', '>secret', '~other:*', '&*', '+@all']);
    const locks = await lab.locks({ url });
    const startedAt = performance.now();
    const refused = await failure(locks.lock('a').acquire({ waitMs: 10_000 }));
    expect(refused).toMatchObject({
      code: 'LOCK_BACKEND',
      cause: expect.objectContaining({ message: expect.stringMatching(/NOPERM|permission/i) }),
    });
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    expect(await redis.command('DBSIZE')).toBe(0);
  });

  it('a user without one of the rights: the message says which one to grant', async () => {
    await using lab = new Lab(library);
    const redis = await lab.server();
    const rights = async (...rules: readonly string[]): Promise<string> => {
      const url = await urlOfUser(redis, 'lacking', ['reset', 'on', '>secret', ...rules]);
      const locks = await lab.locks({ url });
      const { code, message } = (await failure(locks.lock('a').acquire())) as LockError;
      expect(code).toBe('LOCK_BACKEND');
      return message;
    };
    const time = await rights('~*', '&*', '+@all', '-time');
    expect(time.toLowerCase()).toMatch(/grant .*\+time|the 'time' command/);
    expect(await rights('~*', '&*', '+@all', '-evalsha')).toMatch(/'evalsha'/);
    const keys = await rights('~lock:*', '&*', '+@all');
    expect(keys).toMatch(/Grant .*~locks:token:/);
    expect(await redis.command('KEYS', '*')).toEqual(['lock:{layout}']);
  });

  it('a user who may not subscribe: one warning says what to grant', async () => {
    await using lab = new Lab(library);
    const redis = await lab.server();
    const url = await urlOfUser(redis, 'unheard', NO_CHANNELS);
    const warnings: string[] = [];
    const warned = (warning: Error): void => void warnings.push(warning.message);
    process.on('warning', warned);
    lab.defer(async () => void process.off('warning', warned));
    const [deaf, other] = [
      await lab.locks({ url }, { backend: { prefix: `${library}:` } }),
      await lab.locks(redis, { backend: { prefix: `${library}:` } }),
    ];
    const held = await other.lock('a').acquire();
    const waiting = deaf.lock('a').acquire();
    const own = (): string[] =>
      warnings.filter((warning) => warning.includes(`Grant +subscribe &${library}:ch:*`));
    await waitUntil(() => own().length > 0, { what: 'the warning' });
    expect(own()).toEqual([expect.stringContaining('NOPERM')]);
    await held.release();
    await (await waiting).release();
  });

  it('a user without the right to any channel still hands off and still waits, at the pace of the checks', async () => {
    await using lab = new Lab(library);
    const redis = await lab.server();
    const url = await urlOfUser(redis, 'mute', NO_CHANNELS);
    const [mute, other] = [await lab.locks({ url }), await lab.locks(redis)];
    // It may not publish: the waiter hears nothing and finds its grant by its check.
    const held = await mute.lock('a').acquire();
    const entered = other.lock('a').acquire();
    await untilListening(redis, 'a');
    await held.release();
    const next = await entered;
    // It may not subscribe: it waits all the same, served by its own checks.
    const back = mute.lock('a').acquire();
    await untilWaiting(other, 'a');
    await next.release();
    const releasedAt = performance.now();
    const last = await back;
    expect(performance.now() - releasedAt).toBeLessThan(1_000 + SLACK_MS);
    expect(last.fencingToken).toBeGreaterThan(next.fencingToken as bigint);
    await last.release();
    expect(await redis.command('EXISTS', 'lock::a')).toBe(0);
  });

  it('SCRIPT FLUSH: nothing is noticed by an acquire, a renewal, a hand-off or a release', async () => {
    await using lab = new Lab(library);
    const redis = await lab.server();
    const [holder, waiter] = [await lab.locks(redis), await lab.locks(redis)];
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

  it('replicas that do not follow: fails, leaves nothing, and works again when they do', async () => {
    await using lab = new Lab(library);
    const { master, replicas, stop } = await startReplicated();
    lab.defer(stop);
    const [replica] = replicas as [RedisServer];
    const locks = await lab.locks(master, { backend: { minReplicas: 1, replicaTimeoutMs: 300 } });
    const plain = await lab.locks(master);
    await untilFollowing(master);
    const first = await locks.lock('a').acquire({ waitMs: 2_000 });
    expect(await replica.command('EXISTS', 'lock::a')).toBe(1);
    await first.release();
    await replica.pause();
    lab.defer(() => replica.resume());
    const refused = await failure(locks.lock('a').tryAcquire());
    expect(refused).toMatchObject({
      code: 'LOCK_BACKEND',
      cause: expect.objectContaining({ name: 'ReplicationError' }),
    });
    expect(await master.command('EXISTS', 'lock::a')).toBe(0);
    // A hand-off is no exception.
    const held = await plain.lock('b').acquire();
    const handed = locks.lock('b').acquire({ waitMs: 1_500 });
    await untilWaiting(plain, 'b');
    await held.release();
    expect(await failure(handed)).toMatchObject({ code: 'LOCK_BACKEND' });
    await waitUntil(async () => (await master.command('EXISTS', 'lock::b')) === 0, {
      what: 'nothing to be left',
    });
    replica.resume();
    await untilFollowing(master);
    const again = await locks.lock('a').acquire({ waitMs: 5_000 });
    expect(await replica.command('EXISTS', 'lock::a')).toBe(1);
    await again.release();
  });
});

describe.concurrent.each(libraries)('a wrong password, with %s', (library) => {
  it('is LOCK_BACKEND within the wait, and names the refusal', async () => {
    await using lab = new Lab(library);
    const redis = await lab.server({ password: 'right' });
    const locks = createLocks(
      backendWithPassword(lab, library, `redis://:wrong@${redis.host}:${redis.port}`),
    );
    lab.use(locks);
    const startedAt = performance.now();
    const error = await failure(locks.lock('a').acquire({ waitMs: 3_000 }));
    expect(performance.now() - startedAt).toBeLessThan(3_000 + SLACK_MS);
    const message = expect.stringMatching(/NOAUTH|WRONGPASS/);
    expect(error).toMatchObject({ code: 'LOCK_BACKEND', message, cause: expect.any(Error) });
    expect(await redis.command('DBSIZE')).toBe(0);
  });
});

/** Clients that connect in the background, as in an application that does not wait for it. */
function backendWithPassword(lab: Lab, library: Library, url: string): LockBackend {
  if (library === 'redis-ioredis') {
    const client = new Redis(url);
    client.on('error', () => undefined);
    lab.defer(() => client.disconnect());
    return ioredisBackend(client);
  }
  const client = createClient({ url }).on('error', () => undefined);
  client.connect().catch(() => undefined);
  lab.defer(() => client.destroy());
  return nodeRedisBackend(client);
}

/** Resolves when a replica acknowledges: after a full synchronisation it takes its time with the first one. */
async function untilFollowing(master: RedisServer): Promise<void> {
  const acknowledged = async () =>
    (
      await sendCommands(master, [
        ['SET', 'probe', 1],
        ['WAIT', 1, 500],
      ])
    )[1] === 1;
  await waitUntil(acknowledged, { what: 'a replica that follows' });
}
