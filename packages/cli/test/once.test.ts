import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BASE, SLOT } from './once-slot.ts';
import { folder, isAlive, locks, type Outcome, pidIn, Program, textIn } from './program.ts';
import { type StartedStore, startStore, STORE_NAMES } from './started-stores.ts';

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
      once('busy', ['--wait', '2s', '--skip-code', '7', '--verbose'], 'exit 9'),
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
