import { functionLibrary } from '@locks/redis-ioredis';
import { type RedisServer, sendCommands, startCluster } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { failure, grantOf, untilWaiting } from '../src/fault-lab/observe.ts';
import { type Library, libraries } from '../src/harnesses/redis/open-client.ts';
import Lab from './lab.ts';

const FUNCTIONS = { backend: { functions: true } };
const three: readonly Library[] = [...libraries, 'redis-glide'];
const LOAD = '+function|load';

/** Makes the user of all clients one who may run no script. `rights`: of the commands of scripting. */
async function forbidScripts(server: RedisServer, rights: readonly string[]): Promise<void> {
  await server.command('ACL', 'SETUSER', 'default', '-@scripting', '-@dangerous', '+info', ...rights);
}

describe.each(three)('functions in place of scripts, with %s', { timeout: 60_000 }, (library) => {
  it('serve a user who may run no script: all kinds of locks, waiting, renewal and tokens', async () => {
    await using lab = new Lab(library);
    await using redis = await lab.server();
    await forbidScripts(redis, ['+fcall', LOAD]);
    const scripts = await lab.locks(redis);
    expect(await failure(scripts.lock('a').acquire())).toMatchObject({
      code: 'LOCK_BACKEND',
      message: expect.stringContaining('NOPERM'),
    });
    const [one, other] = [await lab.locks(redis, FUNCTIONS), await lab.locks(redis, FUNCTIONS)];
    const lease = await one.lock('a').acquire();
    expect(await other.lock('a').tryAcquire()).toBeUndefined();
    const waiting = grantOf(other.lock('a').acquire());
    await lease.renew();
    await lease.release();
    const { lease: next } = await waiting;
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken as bigint);
    await next.release();
    const readers = await Promise.all([one, other].map((locks) => locks.readWriteLock('b').read.acquire()));
    for (const reader of readers) await reader.release();
    const permits = await Promise.all([one, other].map((locks) => locks.semaphore('c', 2).acquire()));
    expect((await one.inspect('c')).holders).toHaveLength(2);
    for (const permit of permits) await permit.release();
    await one.all([one.lock('d'), one.lock('e')]).run(() => undefined);
    await one.lock('f').acquire();
    expect(await other.forceRelease('f')).toHaveLength(1);
  });

  it('share one queue with clients that run scripts', async () => {
    await using lab = new Lab(library);
    await using redis = await lab.server();
    const [scripts, functions] = [await lab.locks(redis), await lab.locks(redis, FUNCTIONS)];
    const lease = await scripts.lock('a').acquire();
    const entered = grantOf(functions.lock('a').acquire());
    await untilWaiting(scripts, 'a');
    await lease.release();
    const { lease: next } = await entered;
    expect(await scripts.lock('a').tryAcquire()).toBeUndefined();
    await next.release();
  });

  it('are loaded by an administrator where the user may not, and the refusal says so', async () => {
    await using lab = new Lab(library);
    await using redis = await lab.server();
    await redis.command('ACL', 'SETUSER', 'admin', 'on', 'nopass', '~*', '&*', '+@all');
    await forbidScripts(redis, ['+fcall']);
    const locks = await lab.locks(redis, FUNCTIONS);
    expect(await failure(locks.lock('a').acquire())).toMatchObject({
      code: 'LOCK_BACKEND',
      message: expect.stringContaining('functionLibrary()'),
    });
    await sendCommands(redis, [
      ['AUTH', 'admin', 'any'],
      ['FUNCTION', 'LOAD', functionLibrary()],
    ]);
    await locks.lock('a').run(() => undefined);
  });

  it('are loaded by prepare() of a user who may, for one who may not', async () => {
    await using lab = new Lab(library);
    await using redis = await lab.server();
    const [owner, another] = [await lab.locks(redis, FUNCTIONS), await lab.locks(redis, FUNCTIONS)];
    await Promise.all([owner.prepare(), another.prepare()]);
    await owner.prepare();
    await forbidScripts(redis, ['+fcall']);
    await another.lock('a').run((lease) => lease.assertValid());
    expect(await failure(another.prepare())).toMatchObject({
      code: 'LOCK_BACKEND',
      message: expect.stringContaining('+function|load'),
    });
  });

  it('refuse new locks when memory is full, and renew and release those that are held', async () => {
    await using lab = new Lab(library);
    await using redis = await lab.server();
    const locks = await lab.locks(redis, FUNCTIONS);
    const lease = await locks.lock('a').acquire();
    // The library is there.
    await redis.command('CONFIG', 'SET', 'maxmemory', 1);
    expect(await failure(locks.lock('b').acquire())).toMatchObject({
      code: 'LOCK_BACKEND',
      message: expect.stringContaining('OOM'),
    });
    await lease.renew();
    await lease.release();
    expect(await redis.command('EXISTS', 'lock::a')).toBe(0);
  });

  it('work on every master of a cluster', async () => {
    await using lab = new Lab(library);
    await using cluster = await startCluster({ replicasPerMaster: 0 });
    const locks = await lab.locks({ kind: 'cluster', roots: cluster.roots }, FUNCTIONS);
    const names = Array.from({ length: 12 }, (_, at) => `name ${at}`);
    const leases = await Promise.all(names.map((name) => locks.lock(name).acquire()));
    for (const lease of leases) await lease.release();
    for (const node of cluster.nodes) expect(await node.command('FUNCTION', 'LIST')).toHaveLength(1);
  });
});
