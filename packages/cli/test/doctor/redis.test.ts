import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type RedisOptions, type RedisServer, startRedis, startReplicated } from '@locks/test-servers';
import { afterEach, describe, expect, it } from 'vitest';
import { locks, locksHere, MAIN } from '../program.ts';
import { diagnose, severities } from './diagnose.ts';

const DURABLE = ['--appendonly', 'yes', '--appendfsync', 'always'];
/** The rights that docs/backends/redis.md names, with those of `list`, of `ping` and of the warning of eviction. */
const DOCUMENTED =
  '~lock:* ~{lock:*}:q ~{lock:*}:h ~locks:token:* &lock:ch:* +evalsha +eval +subscribe +publish +time +pubsub +set +getset +get ' +
  '+del +setrange +pttl +pexpire +exists +hset +hsetnx +hget +hdel +hlen +hexists +hgetall +zadd +zrem +zscore +zcount ' +
  '+zrangebyscore +scan +ping +info';
/** What docs/command-line.md names for `locks once` beside those. */
const RIGHTS_OF_ONCE = '~once:* ~locks:fence:*';

const started: { stop(): Promise<void> }[] = [];

afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => server.stop()));
});

/** A server that loses nothing, but for what `args` says. */
async function start(args: readonly string[] = [], options: RedisOptions = {}): Promise<RedisServer> {
  const server = await startRedis({ ...options, args: [...DURABLE, ...args] });
  started.push(server);
  return server;
}

/** The address of a user with these rights. */
async function urlOfUser(server: RedisServer, rights: string): Promise<string> {
  await server.command('ACL', 'SETUSER', 'app', 'on', '>secret', ...rights.split(' '));
  return server.url.replace('redis://', 'redis://app:secret@');
}

describe('locks doctor on Redis', () => {
  it('finds nothing where nothing is wrong, and says so', async () => {
    const server = await start(['--maxmemory', '100mb', '--maxmemory-policy', 'noeviction']);
    const { redis_version: version } = await server.info('server');
    expect(await diagnose(server.url)).toEqual({ store: 'redis', version, findings: [] });
    const { code, stdout } = await locksHere(server.url, 'doctor');
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: `redis ${version}: nothing would break locks or slow them\n`,
    });
    // Nothing of what it tried is left, but for the tokens and the marker of the layout.
    const keys = (await server.command('KEYS', '*')) as string[];
    expect(keys.filter((key) => !key.startsWith('locks:token:'))).toEqual(['lock:{layout}']);
  });

  it.each(['0', '2'])('redis/layout: another version laid out the locks, %s', async (layout) => {
    const server = await start();
    await server.command('SET', 'lock:{layout}', layout);
    expect(severities(await diagnose(server.url))).toEqual({ 'redis/layout': 'error' });
  });

  it('redis/eviction: keys may be evicted', async () => {
    const server = await start(['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru']);
    expect(severities(await diagnose(server.url))).toEqual({ 'redis/eviction': 'error' });
    const { code, stdout } = await locksHere(server.url, 'doctor');
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /^redis [\d.]+: 1 error\nerror {4}redis\/eviction\n {2}Redis may evict .*\n {2}do: CONFIG SET .*\n$/,
    );
  });

  it('redis/memory: the memory is nearly full, and then full', async () => {
    const server = await start(['--maxmemory-policy', 'noeviction']);
    await server.command('SET', 'filled', 'x'.repeat(20_000_000));
    const used = Number((await server.info('memory'))['used_memory']);
    await server.command('CONFIG', 'SET', 'maxmemory', Math.round(used * 1.06));
    expect(severities(await diagnose(server.url))).toEqual({ 'redis/memory': 'warning' });
    await server.command('CONFIG', 'SET', 'maxmemory', Math.round(used * 0.9));
    expect(severities(await diagnose(server.url))).toEqual({ 'redis/memory': 'error' });
  });

  it('redis/connections: nearly all connections are in use', async () => {
    const server = await start();
    await server.command('CONFIG', 'SET', 'maxclients', 60);
    const sockets = await Promise.all(
      Array.from({ length: 53 }, async () => {
        const socket: Socket = connect(server.port, server.host);
        await once(socket, 'connect');
        return socket;
      }),
    );
    expect(severities(await diagnose(server.url))).toEqual({ 'redis/connections': 'warning' });
    for (const socket of sockets) socket.destroy();
  });

  it('redis/persistence: a restart loses leases', async () => {
    const server = await startRedis();
    started.push(server);
    expect(severities(await diagnose(server.url))).toEqual({ 'redis/persistence': 'warning' });
  });

  it.each(['everysec', 'no'])('redis/appendfsync: a power cut loses leases with %s', async (policy) => {
    const server = await start(['--appendfsync', policy]);
    expect(severities(await diagnose(server.url))).toEqual({ 'redis/appendfsync': 'warning' });
  });

  it('redis/failover, redis/replica: a master that goes on alone, and a replica that refuses to write', async () => {
    const replicated = await startReplicated({ args: DURABLE });
    started.push(replicated);
    const { master, replicas } = replicated;
    expect(severities(await diagnose(master.url))).toEqual({ 'redis/failover': 'warning' });
    await master.command('CONFIG', 'SET', 'min-replicas-to-write', 1);
    expect(severities(await diagnose(master.url))).toEqual({});
    expect(severities(await diagnose(replicas[0]?.url ?? ''))).toEqual({ 'redis/replica': 'error' });
  });

  it('redis/min-replicas: too few replicas are connected', async () => {
    const server = await start(['--min-replicas-to-write', '1']);
    expect(severities(await diagnose(server.url))).toEqual({ 'redis/min-replicas': 'error' });
  });

  it('redis/acl: the user may not call what locks need', async () => {
    const server = await start();
    const { findings } = await diagnose(await urlOfUser(server, '~* &* +@all -evalsha'));
    expect(findings).toEqual([
      expect.objectContaining({
        id: 'redis/acl',
        severity: 'error',
        what: expect.stringContaining('evalsha') as string,
      }),
    ]);
  });

  it('redis/acl: only what some kinds of locks need is missing', async () => {
    const server = await start();
    const { findings } = await diagnose(await urlOfUser(server, '~* &* +@all -zadd'));
    expect(findings).toEqual([
      expect.objectContaining({
        id: 'redis/acl',
        what: expect.stringMatching(/^could not wait for a lock: .*zadd/is) as string,
      }),
    ]);
  });

  it('redis/channel: the user may not listen', async () => {
    const server = await start();
    const url = await urlOfUser(server, '~* resetchannels +@all');
    expect(severities(await diagnose(url))).toEqual({ 'redis/channel': 'warning' });
  });

  it('redis/info, redis/config: the user may not ask', async () => {
    const server = await start();
    expect(severities(await diagnose(await urlOfUser(server, '~* &* +@all -info')))).toEqual({
      'redis/info': 'unknown',
    });
    expect(severities(await diagnose(await urlOfUser(server, '~* &* +@all +info -config')))).toEqual({
      'redis/config': 'unknown',
    });
  });

  it('a user with the rights that are documented can do all', async () => {
    const server = await start();
    const url = await urlOfUser(server, DOCUMENTED);
    expect(severities(await diagnose(url))).toEqual({ 'redis/config': 'unknown' });
    // All commands; the record of `once` has keys of its own.
    expect(await locks(url, 'run', 'job', '--', 'true')).toMatchObject({ code: 0 });
    const inside = `"$0" "$1" ls && "$0" "$1" show job && "$0" "$1" release job --everyone --yes`;
    const looked = await locks(url, 'run', 'job', '--', 'sh', '-c', inside, process.execPath, MAIN);
    expect(looked.stdout).toMatch(/^NAME .*\njob .*\njob\n {2}held by .*\nreleased /);
    const once = ['once', 'job', '--slot', 'day', '--at-most', '1m', '--', 'true'];
    expect(await locks(url, ...once)).toMatchObject({
      code: 69,
      stderr: expect.stringContaining('NOPERM') as string,
    });
    await server.command('ACL', 'SETUSER', 'app', ...RIGHTS_OF_ONCE.split(' '));
    expect(await locks(url, ...once)).toMatchObject({ code: 0 });
    const again = await locks(url, ...once.slice(0, 6), '--skip-code', '75', '--', 'true');
    expect(again).toMatchObject({ code: 75 });
  });

  it('redis/clock: the clocks are apart', async () => {
    const server = await start();
    const { findings } = await diagnose(server.url, { clock: 'wrong' });
    expect(findings).toEqual([
      expect.objectContaining({
        id: 'redis/clock',
        severity: 'warning',
        what: expect.stringMatching(/(59|60)\.\d s behind/) as string,
      }),
    ]);
  });

  it('redis/trial: the server has no EVAL', async () => {
    const server = await start(['--rename-command', 'EVAL', '', '--rename-command', 'EVALSHA', '']);
    expect(severities(await diagnose(server.url))).toMatchObject({ 'redis/trial': 'error' });
  });
});
