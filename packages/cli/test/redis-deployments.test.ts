import { createLocks, type LockManager } from '@locks/core';
import { redisBackend } from '@locks/redis-ioredis';
import {
  type RedisCluster,
  type SentinelDeployment,
  startCluster,
  startRedis,
  startSentinel,
} from '@locks/test-servers';
import { Cluster } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { diagnose, severities } from './doctor/diagnose.ts';
import { BASE } from './once-slot.ts';
import { locks, locksHere, Program } from './program.ts';

const DURABLE = ['--appendonly', 'yes', '--appendfsync', 'always'];

describe('a cluster of Redis', () => {
  let cluster: RedisCluster;
  let client: Cluster;
  let manager: LockManager;
  let url: string;
  beforeAll(async () => {
    cluster = await startCluster({ replicasPerMaster: 0, args: DURABLE });
    client = new Cluster([...cluster.roots]);
    manager = createLocks(redisBackend(client));
    url = cluster.nodes[0]?.url as string;
  });
  afterAll(async () => {
    await manager.close();
    client.disconnect();
    await cluster.stop();
  });

  it('is found out from one node: names of all slots are locked, listed and released', async () => {
    const names = Array.from({ length: 12 }, (_, index) => `name-${index}`);
    const leases = await Promise.all(names.map((name) => manager.lock(name).acquire()));
    const { stdout } = await locks(url, 'ls', '--json');
    const listed = stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { name: string }).name);
    expect(listed.sort()).toEqual(names.sort());
    const busy = await Promise.all(
      names.slice(0, 4).map((name) => locksHere(url, 'run', name, '--no-wait', '--', 'true')),
    );
    expect(busy.map(({ code }) => code)).toEqual([75, 75, 75, 75]);
    await Promise.all(leases.map((lease) => lease.release()));
    const inside = 'test -n "$LOCK_TOKEN"';
    for (const name of names.slice(0, 4))
      expect(await locks(url, 'run', name, '--', 'sh', '-c', inside)).toMatchObject({ code: 0, stderr: '' });
  });

  it('may be named by several nodes', async () => {
    await using _lease = await manager.lock('listed').acquire();
    const hosts = cluster.roots.map(({ host, port }) => `${host}:${port}`);
    expect((await locksHere(`redis://${hosts.join(',')}`, 'ls')).stdout).toContain('listed');
  });

  it('keeps the record of `locks once`', async () => {
    for (const name of ['a', 'b', 'c']) {
      expect((await locks(url, 'once', name, ...BASE, '--', 'true')).code).toBe(0);
      expect((await locks(url, 'once', name, ...BASE, '--skip-code', '7', '--', 'true')).code).toBe(7);
    }
  });

  it('is examined, and has nothing wrong', async () => {
    expect((await diagnose(url)).findings).toEqual([]);
  });

  it('that does not serve its slots is an error of doctor, and 69 elsewhere', async () => {
    await using node = await startRedis({ args: ['--cluster-enabled', 'yes'] });
    expect(severities(await diagnose(node.url))).toEqual({ 'redis/cluster': 'error' });
    const outcome = await new Program(['ls'], node.url).outcome;
    expect(outcome).toMatchObject({ code: 69, stderr: expect.stringContaining('CLUSTERDOWN') });
  });
});

describe('Redis with Sentinel', () => {
  let deployment: SentinelDeployment;
  beforeAll(async () => {
    deployment = await startSentinel({ replicas: 1 });
  });
  afterAll(() => deployment.stop());

  const urlOf = (path: string): string =>
    `redis+sentinel://${deployment.sentinels.map(({ host, port }) => `${host}:${port}`).join(',')}${path}`;

  it('is reached by the addresses of its sentinels and the name of the master', async () => {
    const url = urlOf(`/${deployment.name}`);
    const outcome = await locks(url, 'run', 'x', '--', 'sh', '-c', 'test -n "$LOCK_TOKEN"');
    expect(outcome).toMatchObject({ code: 0, stderr: '' });
    expect((await locks(url, 'once', 'x', ...BASE, '--', 'true')).code).toBe(0);
    expect(await (await deployment.master()).command('EXISTS', 'once:x')).toBe(1);
    expect(await (await deployment.master()).command('SELECT', '2')).toBe('OK');
    expect((await locksHere(`${url}/2`, 'ls')).stdout).toBe('nothing is held or waited for\n');
    expect((await diagnose(url)).store).toBe('redis');
  });

  it.each([
    ['/', 'the name of the master is missing'],
    ['/locks/two', '"two"'],
  ])('%s is refused: %s', async (path, reason) => {
    expect(await locksHere(urlOf(path), 'ls')).toMatchObject({
      code: 64,
      stderr: expect.stringContaining(reason),
    });
  });

  it('says that no sentinel knows the master', async () => {
    const outcome = await locksHere(urlOf('/another'), 'ls');
    expect(outcome).toMatchObject({ code: 69, stderr: expect.stringContaining('entinel') });
  });
});
