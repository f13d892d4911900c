import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitUntil } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BASE, SLOT } from './once-slot.ts';
import { folder, isAlive, locks, locksHere, type Outcome, pidIn, Program, textIn } from './program.ts';
import { type StartedStore, startStore, STORE_NAMES } from './started-stores.ts';

/** Another one than that of the locks which nobody names a prefix for. */
const PREFIXES = {
  redis: 'other:',
  postgres: 'other_schema',
  mysql: 'other_',
  etcd: 'other/',
  zookeeper: '/other',
  sqlite: undefined,
  file: undefined,
  dynamodb: 'other/',
  s3: 'other/',
  nats: 'other/',
  mongodb: 'other/',
};

/** The environment of a machine whose clock is a year ahead. */
const AHEAD = {
  NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(`
    const right = Date;
    const ahead = () => right.now() + 366 * 86_400_000;
    globalThis.Date = class Date extends right {
      constructor(...args) { super(...(args.length === 0 ? [ahead()] : args)); }
      static now() { return ahead(); }
    };`)}`,
};
/** The stores whose records tell the time of the store. */
const TELLS_TIME = new Set<string>([
  'redis',
  'postgres',
  'mysql',
  'dynamodb',
  's3',
  'nats',
  'mongodb',
  'zookeeper',
]);

// Each command listens to signals while it runs.
process.setMaxListeners(100);

const codes = (outcomes: readonly Outcome[]): number[] =>
  outcomes.map(({ code }) => code).toSorted((a, b) => a - b);

/** A command that runs until the folder has a file `end`. */
const until = (dir: string): string[] => [
  'sh',
  '-c',
  `echo $$ > ${dir}/child; while ! test -e ${dir}/end; do sleep 0.02; done`,
];
const runsIn = (dir: string): Promise<number> =>
  waitUntil(() => pidIn(join(dir, 'child')), { what: 'the command to run' });

describe.concurrent.each(STORE_NAMES)('on %s', (store) => {
  let started: StartedStore;
  let url: string;
  beforeAll(async () => {
    started = await startStore(store);
    ({ url } = started);
  });
  afterAll(() => started[Symbol.asyncDispose]());

  const once = (name: string, options: readonly string[], script: string): Promise<Outcome> =>
    locksHere(url, 'once', name, ...BASE, ...options, '--', 'sh', '-c', script);

  it('run, ls, show and release find each other, and a prefix keeps them apart', async () => {
    const dir = folder();
    // Two addresses, as of a list of members.
    const isList = store === 'etcd' || store === 'zookeeper';
    const address = isList ? `${url},${url.split('//')[1]}` : url;
    const running = locksHere(address, 'run', 'held', '--', ...until(dir));
    await runsIn(dir);
    expect(JSON.parse((await locksHere(address, 'show', 'held', '--json')).stdout)).toMatchObject({
      name: 'held',
      holders: [{ mode: { kind: 'exclusive' }, acquisitionId: expect.any(String) as string }],
    });
    expect((await locksHere(address, 'ls', 'held')).stdout).toMatch(/\nheld +exclusive /);
    const prefix = PREFIXES[store];
    const beside = prefix === undefined ? [] : ['--prefix', prefix];
    const again = await locksHere(address, 'run', 'held', '--no-wait', ...beside, '--', 'true');
    expect(again.code).toBe(prefix === undefined ? 75 : 0);
    expect((await locksHere(address, 'run', 'held', '--no-wait', '--', 'true')).code).toBe(75);
    writeFileSync(join(dir, 'end'), '');
    expect(await running).toEqual({ code: 0, stdout: '', stderr: '' });
    expect((await locksHere(address, 'ls', 'held')).stdout).toBe('nothing is held or waited for\n');
    expect((await locksHere(address, 'release', 'held', '--everyone', '--yes')).code).toBe(1);
  });

  it('once runs the command on one of three machines that start it together, and not again in the slot', async () => {
    const runs = join(folder(), 'runs');
    const script = `echo "$LOCK_NAME $LOCK_SLOT $LOCK_TOKEN" >> ${runs}`;
    const outcomes = await Promise.all([1, 2, 3].map(() => once('job.ä', ['--wait', '40s'], script)));
    // Silent: cron sends mail of whatever is written.
    expect(outcomes).toEqual(outcomes.map(() => ({ code: 0, stdout: '', stderr: '' })));
    expect(textIn(runs)).toMatch(/^job\.ä \d{4}-\d\d-\d\d \d+\n$/);
    const late = await once('job.ä', ['--skip-code', '3', '--verbose', '--label', 'late'], `echo >> ${runs}`);
    expect(late).toMatchObject({ code: 3, stderr: expect.stringMatching(/was done by .*nothing to do/) });
    expect(textIn(runs).split('\n')).toHaveLength(2);
  });

  it('once repeats a failed run on the next machine, or on no machine before the next slot', async () => {
    const dir = folder();
    const failsOnce = `test -e ${dir}/tried && exit 0; touch ${dir}/tried; exit 9`;
    const outcomes = await Promise.all([1, 2].map(() => once('again', ['--wait', '40s'], failsOnce)));
    expect(codes(outcomes)).toEqual([0, 9]);
    const nextSlot = ['--retry', 'next-slot'];
    expect((await once('never', nextSlot, 'exit 9')).code).toBe(9);
    const refused = await once('never', nextSlot, 'exit 0');
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('failed or died') });
  });

  it('once is refused where the clock is ahead, tells of a record of the future, and resets it', async () => {
    const runs = join(folder(), 'runs');
    const far = ['--slot', '1ms', '--at-most', '2m', '--', 'sh', '-c', `echo >> ${runs}`];
    const refused = await new Program(['once', 'clock', ...far], url, '', AHEAD).outcome;
    if (TELLS_TIME.has(store)) {
      expect(refused).toMatchObject({ code: 71, stderr: expect.stringContaining('lies in the future') });
      expect(textIn(runs)).toBe('');
      expect((await locksHere(url, 'once', 'clock', '--reset')).code).toBe(1);
    } else {
      // No time but that of the machine itself: the others tell.
      expect(refused).toMatchObject({ code: 0 });
      const silent = await locksHere(url, 'once', 'clock', ...far);
      expect(silent).toMatchObject({ code: 71, stderr: expect.stringContaining('locks once clock --reset') });
      const reset = await locksHere(url, 'once', 'clock', '--reset', '--label', 'me');
      expect(reset).toMatchObject({ code: 0, stdout: expect.stringContaining('is forgotten') });
    }
    expect(await locksHere(url, 'once', 'clock', ...far)).toMatchObject({ code: 0, stderr: '' });
    const done = await locksHere(url, 'once', 'clock', '--reset');
    expect(done).toMatchObject({ code: 0, stdout: expect.stringContaining('is forgotten') });
  });

  it('once leaves a command alone that runs elsewhere', async () => {
    const dir = folder();
    const first = locksHere(url, 'once', 'busy', ...BASE, '--', ...until(dir));
    await runsIn(dir);
    const others = await Promise.all([
      once('busy', [], 'exit 9'),
      once('busy', ['--wait', '2s', '--skip-code', '7', '--verbose'], 'exit 9'),
    ]);
    expect(codes(others)).toEqual([0, 7]);
    expect(others[1]?.stderr).toContain('another machine runs it');
    writeFileSync(join(dir, 'end'), '');
    expect((await first).code).toBe(0);
  });

  it('once ends a command that takes longer than --at-most, and another machine may run it then', async () => {
    const dir = folder();
    const stubborn = `trap '' TERM; echo $$ > ${dir}/child; while :; do sleep 0.05; done`;
    const outcome = await locksHere(
      url,
      'once',
      'long',
      ...SLOT,
      '--at-most',
      '3s',
      '--',
      'sh',
      '-c',
      stubborn,
    );
    expect(outcome).toMatchObject({ code: 70, stderr: expect.stringContaining('--at-most') });
    await waitUntil(() => !isAlive(pidIn(join(dir, 'child')) as number), { what: 'the end of the command' });
    expect((await once('long', ['--wait', '40s'], 'exit 0')).code).toBe(0);
  });

  it.runIf(store === 'zookeeper')('--at-least is refused where the lock ends with the process', async () => {
    const outcome = await once('x', ['--at-least', '1s'], 'true');
    expect(outcome).toMatchObject({ code: 64, stderr: expect.stringContaining('--at-least') });
  });

  it.skipIf(store === 'zookeeper')(
    'once keeps the lock for --at-least after the process has ended',
    async () => {
      // Slots that are over at once, so that the second call finds the lock and not the record.
      const args = ['once', 'short', '--slot', '1ms', '--at-most', '10m'];
      // The process exits by itself.
      expect((await locks(url, ...args, '--at-least', '60s', '--', 'true')).code).toBe(0);
      expect((await locksHere(url, ...args, '--skip-code', '9', '--', 'true')).code).toBe(9);
      const { holders } = JSON.parse((await locksHere(url, 'show', 'short', '--json')).stdout) as {
        holders: { expiresInMs: number }[];
      };
      expect(holders[0]?.expiresInMs).toBeLessThan(65_000);
    },
  );

  it.runIf(store === 'zookeeper')(
    'a command goes on for longer than a session is valid without an answer of its server',
    async () => {
      const outcomes = await Promise.all([
        locksHere(url, 'once', 'once', ...SLOT, '--at-most', '10m', '--', 'sleep', '14'),
        locksHere(url, 'run', 'run', '--ttl', '10m', '--', 'sleep', '14'),
      ]);
      expect(codes(outcomes)).toEqual([0, 0]);
    },
  );
});
