import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { startRedis, waitUntil } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { BASE } from './once-slot.ts';
import { folder, locks, locksHere, MAIN, Program } from './program.ts';
import { TestRedis } from './started-stores.ts';

const redis = new TestRedis();

describe('locks ls, show, watch and release', () => {
  it('show who holds and who waits, for people and as JSON', async () => {
    const lease = await redis.locks.lock('stock').acquire({ label: 'a holder' });
    const waiter = redis.locks.lock('stock').acquire({ label: 'a waiter', waitMs: 30_000 });
    await waitUntil(async () => (await redis.locks.inspect('stock')).waiters.length === 1, {
      what: 'the waiter',
    });
    await using _other = await redis.locks.readWriteLock('stack').read.acquire();
    const { stdout: table } = await locksHere(redis.url, 'ls', 'sto');
    expect(table).toMatch(
      /^NAME +MODE +HOLDER +TOKEN +HELD +LEFT +WAITING\nstock +exclusive +a holder +\d+ .* 1\n$/,
    );
    const { stdout: json } = await locksHere(redis.url, 'ls', '--json');
    const states = json
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { name: string; holders: { fencingToken: string }[] });
    expect(states.map(({ name }) => name).sort()).toEqual(['stack', 'stock']);
    const { stdout: shown } = await locksHere(redis.url, 'show', 'stock', '--json');
    expect(JSON.parse(shown)).toEqual({
      name: 'stock',
      holders: [
        expect.objectContaining({
          acquisitionId: lease.acquisitionId,
          label: 'a holder',
          mode: { kind: 'exclusive' },
          fencingToken: String(lease.fencingToken),
        }),
      ],
      waiters: [expect.objectContaining({ label: 'a waiter' })],
    });
    expect((await locksHere(redis.url, 'show', 'stock')).stdout).toMatch(
      /held by a holder .*\n {2}1\. waits a waiter/,
    );
    await lease.release();
    await (await waiter).release();
    expect((await locksHere(redis.url, 'show', 'stock')).stdout).toBe('stock is free\n');
  });

  it('watch writes each change', async () => {
    const program = new Program(['watch', 'seen', '--every', '50ms', '--json'], redis.url);
    let written = '';
    program.child.stdout?.on('data', (chunk) => (written += String(chunk)));
    const lease = await redis.locks.lock('seen').acquire();
    await waitUntil(() => written.includes(lease.acquisitionId), { what: 'the holder to be seen' });
    await lease.release();
    await waitUntil(() => written.endsWith('{"name":"seen","holders":[],"waiters":[]}\n'), {
      what: 'its end to be seen',
    });
    program.child.kill('SIGINT');
    expect((await program.outcome).code).toBe(0);
  });

  it('release ends one hold, after it was told that nobody asks', async () => {
    const lease = await redis.locks.lock('stuck').acquire();
    const id = lease.acquisitionId;
    const unasked = await locksHere(redis.url, 'release', 'stuck', '--id', id);
    expect(unasked).toMatchObject({ code: 64, stderr: expect.stringContaining('--yes') });
    expect((await locksHere(redis.url, 'release', 'stuck', '--yes')).code).toBe(64);
    expect((await locksHere(redis.url, 'release', 'stuck', '--id', 'another', '--yes')).code).toBe(1);
    // An id may begin with dashes; an option is none.
    expect((await locksHere(redis.url, 'release', 'stuck', '--id', '-other', '--yes')).code).toBe(1);
    expect((await locksHere(redis.url, 'release', 'stuck', '--id', '--other', '--yes')).code).toBe(1);
    expect((await locksHere(redis.url, 'release', 'stuck', '--id', '--yes')).code).toBe(64);
    expect(await redis.locks.isLocked('stuck')).toBe(true);
    const { code, stdout } = await locksHere(redis.url, 'release', 'stuck', '--id', id, '--yes', '--json');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ name: 'stuck', released: [{ acquisitionId: id }] });
    expect(await redis.locks.isLocked('stuck')).toBe(false);
  });

  it.runIf(process.platform === 'linux')('says when its output cannot be written', async () => {
    await using _lease = await redis.locks.lock('full').acquire();
    const child = spawn(process.execPath, [MAIN, 'ls', '--url', redis.url], {
      stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe'],
    });
    let stderr = '';
    child.stderr?.on('data', (chunk) => (stderr += String(chunk)));
    const [code] = (await once(child, 'close')) as [number];
    expect({ code, stderr }).toEqual({ code: 74, stderr: expect.stringContaining('ENOSPC') });
  });
});

describe('a wrong command line', () => {
  it.each([
    [[], 'a command is missing'],
    [['lock'], 'unknown command "lock"'],
    [['rnu', 'x'], 'did you mean run?'],
    [['run', 'x', '--wiat', '5s', '--', 'true'], 'did you mean --wait?'],
    [['run', 'x', '--colour', '--', 'true'], '--permits'],
    [['run', 'x', '--wait', '5s', '--no-wait', '--', 'true'], 'give one of them'],
    [['run'], 'the name of the lock is missing'],
    [['run', 'x'], 'the command is missing'],
    [['run', 'x', 'y', '--', 'true'], '"y" stands before --'],
    [['run', 'x', '--wait', '5', '--', 'true'], '500ms, 5s, 2m or 1h'],
    [['run', 'x', '--perimts', '5', '--', 'true'], '--perimts'],
    [
      ['run', 'x', '--shared', '--permits', '5', '--', 'true'],
      '--shared and --permits contradict each other',
    ],
    [['run', 'x', '--permits', 'many', '--', 'true'], 'permits'],
    [['run', 'x', '--json', '--', 'true'], '--json'],
    [['ls', 'a', 'b'], '"b" is too much'],
    [['show'], 'the name of the lock is missing'],
    [['show', 'x', '--id', 'y'], '--id'],
    [['ls', '--url', 'ftp://host'], 'no backend for "ftp:"'],
    [['ls', '--url', 'nonsense'], 'not a URL'],
    [['ls', '--url', 'localhost:6379'], 'redis://localhost:6379'],
    [['ls', '--url', '127.0.0.1:6379/1'], 'redis://127.0.0.1:6379/1'],
    [['ls', '--url', 'redis:6379'], '//'],
    [['ls', '--url', 'mysql:host'], '//'],
    [['ls', '--url', 'redis://127.0.0.1/notadb'], '"notadb"'],
    [['ls', '--url', 'redis://127.0.0.1/1/2'], '"1/2"'],
    [['ls', '--url', 'redis://user:5%@127.0.0.1'], '%25'],
    [['ls', '--url', 'mysql://user:5%@127.0.0.1'], '%25'],
    [['ls', '--url', 'etcd://'], 'a host is missing'],
    [['run', 'x', '--', ''], 'the command is empty'],
  ])('%j is refused with 64 and a reason', async (args, reason) => {
    const { code, stderr } = await locksHere(redis.url, ...args);
    expect({ code, stderr }).toEqual({ code: 64, stderr: expect.stringContaining(reason) });
  });

  it.each(['ls', 'run x -- true', 'doctor', 'board'])(
    '%s with a prefix that the store refuses is 64, and ends',
    async (line) => {
      const [command = '', ...rest] = line.split(' ');
      const outcome = await locks(redis.url, command, '--prefix', 'a{b', ...rest);
      expect(outcome).toMatchObject({ code: 64, stderr: expect.stringContaining('prefix must be') });
    },
  );

  it('a database that the server does not have is 64', async () => {
    await using _lease = await redis.locks.lock('in database 0').acquire();
    const outcome = await locksHere(`${redis.url.replace(/\/$/, '')}/99`, 'ls');
    expect(outcome).toMatchObject({ code: 64, stderr: expect.stringContaining('database 99') });
  });

  it('a store that cannot be reached is 69, with the error of the connection', async () => {
    const outcomes = await Promise.all(
      ['ls', 'doctor'].map((command) => locksHere('redis://127.0.0.1:1', command)),
    );
    for (const { code, stderr } of outcomes)
      expect({ code, stderr }).toEqual({ code: 69, stderr: expect.stringContaining('ECONNREFUSED') });
  });

  it.each(['run', 'once'])(
    '%s --wait bounds the whole attempt, where the store is down and where it hangs',
    async (name) => {
      await using frozen = await startRedis();
      await frozen.pause();
      const from = performance.now();
      const options = name === 'run' ? [] : BASE;
      const outcomes = await Promise.all(
        ['redis://127.0.0.1:1', frozen.url].map((url) =>
          locksHere(url, name, 'x', ...options, '--wait', '500ms', '--', 'true'),
        ),
      );
      expect(outcomes.map(({ code }) => code)).toEqual([69, 69]);
      // A second for the connection; without a wait the store has five.
      expect(performance.now() - from).toBeLessThan(4_900);
      frozen.resume();
    },
  );

  it('--help and --version need no store', async () => {
    expect((await locksHere('', '--help')).stdout).toMatch(/^usage: locks run/);
    expect((await locksHere('', 'run', '--help')).code).toBe(0);
    expect((await locksHere('', '--version')).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});

it('a SQLite file is a store', async () => {
  const file = `sqlite:${folder()}/locks.db`;
  expect((await locks(file, 'run', 'x', '--', 'sh', '-c', 'test "$LOCK_TOKEN" -gt 0')).code).toBe(0);
  expect((await locksHere(file, 'ls', '--prefix', 'y')).code).toBe(64);
});
