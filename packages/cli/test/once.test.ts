import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { folder, isAlive, locks, type Outcome, pidIn, Program, textIn } from './program.ts';
import { type StartedStore, startStore, STORE_NAMES, TestRedis } from './started-stores.ts';

/** A slot that does not end while the tests run. */
const SLOT = [
  '--slot',
  'day',
  '--starts-at',
  `${String((new Date().getUTCHours() + 12) % 24).padStart(2, '0')}:00`,
];
const BASE = [...SLOT, '--at-most', '2m'];
const codes = (outcomes: readonly Outcome[]): number[] =>
  outcomes.map(({ code }) => code).toSorted((a, b) => a - b);

it.concurrent('a command goes on for longer than a session is valid without an answer of its server', async () => {
  await using store = await startStore('zookeeper');
  const outcomes = await Promise.all([
    locks(store.url, 'once', 'once', ...SLOT, '--at-most', '10m', '--', 'sleep', '14'),
    locks(store.url, 'run', 'run', '--ttl', '10m', '--', 'sleep', '14'),
  ]);
  expect(codes(outcomes)).toEqual([0, 0]);
});

it.concurrent('--at-least is refused where the lock ends with the process', async () => {
  await using store = await startStore('zookeeper');
  const outcome = await locks(store.url, 'once', 'x', ...BASE, '--at-least', '1s', '--', 'true');
  expect(outcome).toMatchObject({ code: 64, stderr: expect.stringContaining('--at-least') });
});

describe.concurrent.each(STORE_NAMES)('locks once on %s', (store) => {
  let started: StartedStore;
  let url: string;
  beforeAll(async () => {
    started = await startStore(store);
    ({ url } = started);
  });
  afterAll(() => started[Symbol.asyncDispose]());

  const once = (name: string, options: readonly string[], script: string): Promise<Outcome> =>
    locks(url, 'once', name, ...BASE, ...options, '--', 'sh', '-c', script);

  it('runs the command on one of three machines that start it at once, and not again in the slot', async () => {
    const runs = join(folder(), 'runs');
    const script = `echo "$LOCK_NAME $LOCK_SLOT $LOCK_TOKEN" >> ${runs}; sleep 0.3`;
    const outcomes = await Promise.all([1, 2, 3].map(() => once('job.ä', ['--wait', '40s'], script)));
    // Silent: cron sends mail of whatever is written.
    expect(outcomes).toEqual(outcomes.map(() => ({ code: 0, stdout: '', stderr: '' })));
    expect(textIn(runs)).toMatch(/^job\.ä \d{4}-\d\d-\d\d \d+\n$/);
    const late = await once('job.ä', ['--skip-code', '3', '--verbose', '--label', 'late'], `echo >> ${runs}`);
    expect(late).toMatchObject({ code: 3, stderr: expect.stringMatching(/was done by .*nothing to do/) });
    expect(textIn(runs).split('\n')).toHaveLength(2);
  });

  it('repeats a failed run on the next machine, or in no machine before the next slot', async () => {
    const folderOfRuns = folder();
    const failsOnce = `test -e ${folderOfRuns}/tried && exit 0; touch ${folderOfRuns}/tried; sleep 0.5; exit 9`;
    const outcomes = await Promise.all([1, 2].map(() => once('again', ['--wait', '40s'], failsOnce)));
    expect(codes(outcomes)).toEqual([0, 9]);
    const nextSlot = ['--retry', 'next-slot'];
    expect((await once('never', nextSlot, 'exit 9')).code).toBe(9);
    const refused = await once('never', nextSlot, 'exit 0');
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('failed or died') });
  });

  it('leaves a command alone that runs elsewhere', async () => {
    const dir = folder();
    const first = new Program(
      [
        'once',
        'busy',
        ...BASE,
        '--',
        'sh',
        '-c',
        `echo $$ > ${dir}/child; while ! test -e ${dir}/end; do sleep 0.05; done`,
      ],
      url,
    );
    await waitUntil(() => pidIn(join(dir, 'child')), { what: 'the command to run' });
    const others = await Promise.all([
      once('busy', [], 'exit 9'),
      once('busy', ['--wait', '5s', '--skip-code', '7', '--verbose'], 'exit 9'),
    ]);
    expect(codes(others)).toEqual([0, 7]);
    expect(others[1]?.stderr).toContain('another machine runs it');
    writeFileSync(join(dir, 'end'), '');
    expect((await first.outcome).code).toBe(0);
  });

  it('ends a command that takes longer than --at-most, and another machine may run it then', async () => {
    const dir = folder();
    const stubborn = `trap '' TERM; echo $$ > ${dir}/child; while :; do sleep 0.05; done`;
    const args = ['once', 'long', ...SLOT, '--at-most', '3s', '--', 'sh', '-c', stubborn];
    const outcome = await new Program(args, url).outcome;
    expect(outcome).toMatchObject({ code: 70, stderr: expect.stringContaining('--at-most') });
    await waitUntil(() => !isAlive(pidIn(join(dir, 'child')) as number), { what: 'the end of the command' });
    expect((await once('long', ['--wait', '40s'], 'exit 0')).code).toBe(0);
  });

  it.skipIf(store === 'zookeeper')('keeps the lock for --at-least after the process has ended', async () => {
    // Slots that are over at once, so that the second call finds the lock and not the record.
    const run = (...options: string[]): Promise<Outcome> =>
      locks(url, 'once', 'short', '--slot', '1ms', '--at-most', '10m', ...options, '--', 'true');
    expect((await run('--at-least', '60s')).code).toBe(0);
    expect((await run('--skip-code', '9')).code).toBe(9);
    const { holders } = JSON.parse((await locks(url, 'show', 'short', '--json')).stdout) as {
      holders: { expiresInMs: number }[];
    };
    expect(holders[0]?.expiresInMs).toBeLessThan(65_000);
  });
});

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
      (await locks(redis.url, 'show', 'wait')).stdout.includes('waits');
    await waitUntil(isWaiting, { what: 'the wait' });
    waiting.child.kill('SIGINT');
    expect((await waiting.outcome).code).toBe(128 + 2);
    writeFileSync(join(dir, 'end'), '');
    expect((await busy.outcome).code).toBe(0);
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
    [['once', 'x', ...BASE, '--at-least', '3m', '--', 'true'], '--at-least is above --at-most'],
    [['once', 'x', ...BASE, '--offset', '1m', '--', 'true'], '--offset'],
    [['once', 'x', '--slot', 'hour', '--time-zone', 'UTC', '--at-most', '1m', '--', 'true'], '--time-zone'],
    [['once', 'x', '--slot', 'day', '--time-zone', 'Mars', '--at-most', '1m', '--', 'true'], 'time zone'],
    [['once', 'x', ...BASE, '--retry', 'never', '--', 'true'], '--retry'],
    [['once', 'x', ...BASE, '--skip-code', '300', '--', 'true'], '--skip-code'],
    [['once', 'x', ...BASE, '--json', '--', 'true'], '--json'],
  ])('%j is refused with 64 and a reason', async (line, reason) => {
    const { code, stderr } = await locks(redis.url, ...line);
    expect({ code, stderr }).toEqual({ code: 64, stderr: expect.stringContaining(reason) });
  });
});
