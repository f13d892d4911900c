import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitUntil } from '@locks/test-servers';
import { describe, expect, it } from 'vitest';
import { BASE, SLOT } from './once-slot.ts';
import { folder, locks, locksHere, pidIn, Program, textIn } from './program.ts';
import { TestRedis } from './started-stores.ts';

describe('locks once', () => {
  const redis = new TestRedis();
  const args = (name: string, script: string): string[] => ['once', name, ...BASE, '--', 'sh', '-c', script];

  it('passes streams and signals on, and does not record a command that was ended', async () => {
    const script = 'read line; echo "$line $LOCK_SLOT"; echo oh >&2';
    const outcome = await new Program(args('streams', script), redis.url, 'input\n').outcome;
    expect(outcome).toEqual({ code: 0, stdout: expect.stringMatching(/^input \d{4}-/), stderr: 'oh\n' });
    const dir = folder();
    const waits = `echo $$ > ${dir}/child; while :; do sleep 0.05; done`;
    const program = new Program(args('ended', waits), redis.url);
    await waitUntil(() => pidIn(join(dir, 'child')), { what: 'the command to run' });
    program.child.kill('SIGTERM');
    expect((await program.outcome).code).toBe(128 + 15);
    expect((await locks(redis.url, ...args('ended', 'exit 4'))).code).toBe(4);
  });

  it('a signal ends the wait', async () => {
    const dir = folder();
    const busy = new Program(
      args('wait', `echo $$ > ${dir}/child; while ! test -e ${dir}/end; do sleep 0.05; done`),
      redis.url,
    );
    await waitUntil(() => pidIn(join(dir, 'child')), { what: 'the command to run' });
    const waiting = new Program(['once', 'wait', ...BASE, '--wait', '1h', '--', 'true'], redis.url);
    const isWaiting = async (): Promise<boolean> =>
      (await locksHere(redis.url, 'show', 'wait')).stdout.includes('waits');
    await waitUntil(isWaiting, { what: 'the wait' });
    waiting.child.kill('SIGINT');
    expect((await waiting.outcome).code).toBe(128 + 2);
    writeFileSync(join(dir, 'end'), '');
    expect((await busy.outcome).code).toBe(0);
  });

  it('with --keep-alive a command runs for longer than --at-most, and no longer than --max-run', async () => {
    const alive = [...SLOT, '--at-most', '1s', '--keep-alive'];
    const longer = await locks(redis.url, 'once', 'alive', ...alive, '--', 'sleep', '3');
    expect(longer.code).toBe(0);
    const bounded = ['once', 'bounded', ...alive, '--max-run', '2s', '--', 'sleep', '60'];
    const ended = await locks(redis.url, ...bounded);
    expect(ended).toMatchObject({ code: 70, stderr: expect.stringContaining('--max-run is over') });
    const misused = await locks(redis.url, 'once', 'x', ...BASE, '--max-run', '2s', '--', 'true');
    expect(misused).toMatchObject({ code: 64, stderr: expect.stringContaining('--keep-alive') });
  });

  it('a command whose `locks once` was killed has ended before another machine runs it', async () => {
    const dir = folder();
    const stubborn = `trap '' TERM; echo $$ > ${dir}/child; while :; do sleep 0.05; done`;
    const program = new Program(
      ['once', 'killed', ...SLOT, '--at-most', '4s', '--', 'sh', '-c', stubborn],
      redis.url,
    );
    const pid = await waitUntil(() => pidIn(join(dir, 'child')), { what: 'the command to run' });
    program.child.kill('SIGKILL');
    await program.outcome;
    const look = `grep State /proc/${pid}/status > ${dir}/state; true`;
    expect(
      (await locks(redis.url, 'once', 'killed', ...BASE, '--wait', '40s', '--', 'sh', '-c', look)).code,
    ).toBe(0);
    // It is gone, or has ended and is not yet reaped.
    expect(textIn(join(dir, 'state'))).toMatch(/^$|[ZX]/);
  });

  it.each([
    [['once'], 'the name of the lock is missing'],
    [['once', 'x', ...BASE], 'the command is missing'],
    [['once', 'x', '--at-most', '1m', '--', 'true'], '--slot is missing'],
    [['once', 'x', '--slot', 'day', '--', 'true'], '--at-most is missing'],
    [['once', 'x', '--slot', 'week', '--at-most', '1m', '--', 'true'], '--slot'],
    [['once', 'x', ...BASE, '--at-least', '3m', '--', 'true'], '--at-least is longer than --at-most'],
    [['once', 'x', ...BASE, '--offset', '1m', '--', 'true'], '--offset'],
    [['once', 'x', '--slot', 'hour', '--time-zone', 'UTC', '--at-most', '1m', '--', 'true'], '--time-zone'],
    [['once', 'x', '--slot', 'day', '--time-zone', 'Mars', '--at-most', '1m', '--', 'true'], 'time zone'],
    [['once', 'x', ...BASE, '--retry', 'never', '--', 'true'], '--retry'],
    [['once', 'x', ...BASE, '--skip-code', '300', '--', 'true'], '--skip-code'],
    [['once', 'x', ...BASE, '--json', '--', 'true'], '--json'],
    [['once', '--reset'], 'the name of the work is missing'],
    [['once', 'x', '--reset', '--', 'true'], 'runs no command'],
    [['once', 'x', '--reset', '--slot', 'day'], '--slot'],
  ])('%j is refused with 64 and a reason', async (line, reason) => {
    const { code, stderr } = await locksHere(redis.url, ...line);
    expect({ code, stderr }).toEqual({ code: 64, stderr: expect.stringContaining(reason) });
  });
});
