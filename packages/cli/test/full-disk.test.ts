import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { waitUntil } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { folder, isAlive, MAIN, pidIn } from './program.ts';
import { TestRedis } from './started-stores.ts';

const redis = new TestRedis();

/** What of the command line is on a full disk. */
type Stream = 'stdout' | 'stderr';

function start(full: readonly Stream[], ...args: string[]): ChildProcess {
  const device = openSync('/dev/full', 'w');
  const streams = (['stdout', 'stderr'] as const).map((stream) => (full.includes(stream) ? device : 'pipe'));
  const child = spawn(process.execPath, [MAIN, ...args], {
    stdio: ['ignore', ...streams],
    env: { ...process.env, LOCKS_URL: redis.url },
  });
  closeSync(device);
  return child;
}

/** The exit code of `locks` on a full disk, and what it wrote elsewhere. */
async function outcomeOf(child: ChildProcess): Promise<{ code: number; stderr: string }> {
  let stderr = '';
  child.stdout?.resume();
  child.stderr?.on('data', (chunk) => (stderr += String(chunk)));
  const [code] = (await once(child, 'close')) as [number];
  return { code, stderr };
}

const CANNOT_WRITE = {
  code: 74,
  stderr: expect.stringMatching(/^locks: the output cannot be written: ENOSPC/) as string,
};

describe.runIf(process.platform === 'linux')('on a full disk', () => {
  it('run exits as the command does, which says itself what it cannot write, and releases the lock', async () => {
    const { code, stderr } = await outcomeOf(start(['stdout'], 'run', 'printing', '--', 'cat', MAIN));
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^cat: .*No space left on device\n$/) as string,
    });
    expect(await redis.locks.isLocked('printing')).toBe(false);
    // A command that writes nothing is not disturbed.
    expect((await outcomeOf(start(['stdout', 'stderr'], 'run', 'silent', '--', 'true'))).code).toBe(0);
    expect(await redis.locks.isLocked('silent')).toBe(false);
  });

  it('run keeps its exit codes where its own messages cannot be written', async () => {
    await using _lease = await redis.locks.lock('held').acquire();
    const run = async (...args: string[]) => (await outcomeOf(start(['stderr'], 'run', ...args))).code;
    expect(await run('held', '--no-wait', '--', 'true')).toBe(75);
    expect(await run('missing', '--', 'no-such-command')).toBe(127);
    expect(await run('missing', '--', folder())).toBe(126);
    expect(await run('missing')).toBe(64);
    expect(await redis.locks.isLocked('missing')).toBe(false);
  });

  it('run ends the command of a lost lease where it cannot say so', async () => {
    const file = join(folder(), 'pid');
    const script = `echo $$ > ${file}; while :; do sleep 0.05; done`;
    const child = start(['stdout', 'stderr'], 'run', 'lost', '--ttl', '3s', '--', 'sh', '-c', script);
    const outcome = outcomeOf(child);
    const pid = await waitUntil(() => pidIn(file), { what: 'the command to run' });
    await redis.locks.forceRelease('lost');
    expect((await outcome).code).toBe(70);
    await waitUntil(() => !isAlive(pid), { what: 'the end of the command' });
  });

  it('the other commands are 74, and say why', async () => {
    for (const args of [
      ['ls'],
      ['show', 'shown', '--json'],
      ['watch', '--every', '50ms'],
      ['doctor'],
      ['--help'],
      ['--version'],
    ]) {
      await using _lease = await redis.locks.lock('shown').acquire();
      expect(await outcomeOf(start(['stdout'], ...args)), args.join(' ')).toEqual(CANNOT_WRITE);
    }
    expect(await redis.used()).toEqual([]);
  });

  it('release has ended the hold, though it cannot say so', async () => {
    const lease = await redis.locks.lock('stuck').acquire();
    const args = ['release', 'stuck', '--id', lease.acquisitionId, '--yes'];
    expect(await outcomeOf(start(['stdout'], ...args))).toEqual(CANNOT_WRITE);
    expect(await redis.locks.isLocked('stuck')).toBe(false);
    // Where nothing at all can be said, the exit code says it.
    expect((await outcomeOf(start(['stdout', 'stderr'], 'show', 'stuck'))).code).toBe(74);
  });
});
