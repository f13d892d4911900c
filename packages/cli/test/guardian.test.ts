import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { startRedis, waitUntil } from '@locks/test-servers';
import { afterAll, describe, expect, it } from 'vitest';
import { ForwardedSignals } from '../src/commands/forwarded-signals.ts';
import { runGuarded } from '../src/commands/guarded-command.ts';
import { CommandGuardian } from '../src/guardian/start-guardian.ts';
import { SLOT } from './once-slot.ts';
import { folder, isAlive, locks, MAIN, pidIn, Program, textIn } from './program.ts';
import { TestRedis } from './started-stores.ts';

const redis = new TestRedis();
/** What a failed test leaves behind. */
const started: number[] = [];
let count = 0;
const fresh = () => `guarded-${++count}`;

afterAll(() => {
  for (const pid of started) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
});

/** Ends at the request to, as if it had done its work. */
const OBEDIENT = `$SIG{TERM} = sub { exit 0 }; open F, '>', $ARGV[0]; print F $$; close F; sleep 60`;
const obedient = (file: string): string[] => ['perl', '-e', OBEDIENT, file];
/** Ignores that request. */
const stubborn = (file: string): string[] => [
  'sh',
  '-c',
  `trap '' TERM; echo $$ > ${file}; while :; do sleep 0.05; done`,
];

interface Running {
  readonly program: Program;
  /** Of the command that writes its process id into the file. */
  readonly pid: number;
}

async function start(url: string, args: readonly string[], file: string): Promise<Running> {
  const program = new Program(args, url);
  const pid = await waitUntil(() => pidIn(file), { what: 'the command to run' });
  started.push(pid, program.child.pid as number);
  return { program, pid };
}

/** A file of a process; empty when the process has just ended. */
function procFile(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'latin1');
  } catch {
    return '';
  }
}

function parentOf(pid: number): number {
  const [, parent] = procFile(pid, 'stat').split(') ').at(-1)?.split(' ') ?? [];
  return Number(parent);
}

/** The guardian that a `locks` with this process id has started. */
function guardianOf(parent: number): number {
  const guardian = readdirSync('/proc')
    .map(Number)
    .filter((pid) => pid > 0 && isAlive(pid) && parentOf(pid) === parent)
    .find((pid) => procFile(pid, 'cmdline').includes('guardian/main'));
  if (guardian === undefined) throw new Error('no guardian runs');
  started.push(guardian);
  return guardian;
}

describe.concurrent('a command that was asked to end, and exits with 0', () => {
  it('is not recorded as done by `locks once`', async ({ expect }) => {
    const codes = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const [name, file] = [fresh(), join(folder(), 'pid')];
        const args = ['once', name, ...SLOT, '--at-most', '2s', '--', ...obedient(file)];
        const { program } = await start(redis.url, args, file);
        return [(await program.outcome).code, await redis.client.exists(`once:${name}`)];
      }),
    );
    expect(codes).toEqual(codes.map(() => [70, 0]));
  });

  it('is known to have been asked, also where that is reported after its end', async ({ expect }) => {
    const late = spawn('sh', [
      '-c',
      'while read line; do case $line in *done*) echo ending; echo done; esac; done',
    ]);
    const guardian = new CommandGuardian(late, createInterface({ input: late.stdout }));
    const signals = new ForwardedSignals();
    const { signal } = new AbortController();
    const lease = { name: 'x', acquisitionId: fresh(), validForMs: 60_000, signal };
    expect(await runGuarded(lease, { command: ['true'] }, guardian, signals, () => undefined)).toBe(70);
    signals.close();
  });

  it('makes `locks run` exit with 70, where nothing but the guardian saw the end of the lease come', async ({
    expect,
  }) => {
    await using own = await startRedis();
    const files = Array.from({ length: 4 }, () => join(folder(), 'pid'));
    const running = await Promise.all(
      files.map((file) => start(own.url, ['run', fresh(), '--ttl', '2s', '--', ...obedient(file)], file)),
    );
    await own.pause();
    const outcomes = await Promise.all(running.map(({ program }) => program.outcome));
    const said = outcomes.map(({ code, stderr }) => [code, /: the command is ended$/m.test(stderr)]);
    expect(said).toEqual(outcomes.map(() => [70, true]));
    own.resume();
  });

  it('is asked once', async ({ expect }) => {
    const [name, dir] = [fresh(), folder()];
    const script = `trap 'echo asked >> ${dir}/asked' TERM; echo $$ > ${dir}/pid; while :; do sleep 0.02; done`;
    const args = ['once', name, ...SLOT, '--at-most', '4s', '--', 'sh', '-c', script];
    const { program } = await start(redis.url, args, join(dir, 'pid'));
    expect((await program.outcome).code).toBe(70);
    expect(textIn(join(dir, 'asked'))).toBe('asked\n');
  });

  it('leaves no child that ignores the request', async ({ expect }) => {
    const [name, dir] = [fresh(), folder()];
    const child = join(dir, 'child');
    const [shell, option, script = ''] = stubborn(child);
    const both = [
      shell,
      option,
      'sh -c "$1" & exec perl -e "$2" "$3"',
      'sh',
      script,
      OBEDIENT,
      join(dir, 'pid'),
    ];
    const args = ['once', name, ...SLOT, '--at-most', '4s', '--', ...(both as string[])];
    const { program } = await start(redis.url, args, join(dir, 'pid'));
    const pid = await waitUntil(() => pidIn(child), { what: 'the child to run' });
    started.push(pid);
    expect((await program.outcome).code).toBe(70);
    expect(isAlive(pid)).toBe(false);
  });
});

describe.concurrent('a command under two locks has ended before another gets the outer one', () => {
  const inside = ['run', 'once'] as const;
  const ends = ['SIGKILL', 'SIGSTOP', 'a forced release'] as const;
  it.each(inside.flatMap((inner) => ends.map((end) => [inner, end] as const)))(
    'with an inner `locks %s`, after %s',
    async (inner, end) => {
      const [outer, file] = [fresh(), join(folder(), 'pid')];
      const options = inner === 'run' ? ['--ttl', '60s'] : [...SLOT, '--at-most', '60s'];
      const innerLine = [
        process.execPath,
        MAIN,
        inner,
        `${outer}-inner`,
        ...options,
        '--',
        ...stubborn(file),
      ];
      const running = await start(redis.url, ['run', outer, '--ttl', '8s', '--', ...innerLine], file);
      if (end === 'a forced release') await redis.locks.forceRelease(outer);
      else running.program.child.kill(end);
      await using _lease = await redis.locks.lock(outer).acquire({ waitMs: 30_000 });
      // A forced release lets the other in at once: the end follows.
      if (end === 'a forced release')
        await waitUntil(() => !isAlive(running.pid), { what: 'the end of the command' });
      expect(isAlive(running.pid)).toBe(false);
      running.program.child.kill('SIGKILL');
    },
  );

  it.each([
    ['whose guardian was killed', true],
    ['with nothing in its environment', false],
  ])('also one %s', async (_, isUnguarded) => {
    const [outer, file] = [fresh(), join(folder(), 'pid')];
    const command = isUnguarded
      ? stubborn(file)
      : ['env', '-i', `PATH=${process.env['PATH']}`, ...stubborn(file)];
    const innerLine = [process.execPath, MAIN, 'run', `${outer}-inner`, '--', ...command];
    const running = await start(redis.url, ['run', outer, '--ttl', '8s', '--', ...innerLine], file);
    if (isUnguarded) process.kill(guardianOf(parentOf(running.pid)), 'SIGKILL');
    running.program.child.kill('SIGKILL');
    await using _lease = await redis.locks.lock(outer).acquire({ waitMs: 30_000 });
    expect(isAlive(running.pid)).toBe(false);
  });
});

describe.concurrent('a command whose guardian', () => {
  it.each(['SIGKILL', 'SIGSTOP'] as const)(
    'got %s is ended by `locks` after a forced release',
    async (signal) => {
      const [name, file] = [fresh(), join(folder(), 'pid')];
      const running = await start(redis.url, ['run', name, '--ttl', '3s', '--', ...stubborn(file)], file);
      const guardian = guardianOf(running.program.child.pid as number);
      process.kill(guardian, signal);
      await redis.locks.forceRelease(name);
      expect((await running.program.outcome).code).toBe(70);
      await waitUntil(() => !isAlive(running.pid) && !isAlive(guardian), {
        what: 'the end of all processes',
      });
    },
  );

  it.each(['SIGKILL', 'SIGSTOP'] as const)(
    'got %s is ended by `locks` at the end of the lease',
    async (signal) => {
      await using own = await startRedis();
      const [asked, ignoring] = [join(folder(), 'pid'), join(folder(), 'pid')];
      const running = await Promise.all([
        start(own.url, ['run', fresh(), '--ttl', '3s', '--', ...obedient(asked)], asked),
        start(own.url, ['run', fresh(), '--ttl', '3s', '--', ...stubborn(ignoring)], ignoring),
      ]);
      for (const one of running) process.kill(guardianOf(one.program.child.pid as number), signal);
      await own.pause();
      const outcomes = await Promise.all(running.map(({ program }) => program.outcome));
      expect(outcomes.map(({ code }) => code)).toEqual([70, 70]);
      await waitUntil(() => !running.some(({ pid }) => isAlive(pid)), { what: 'the end of the commands' });
      own.resume();
    },
  );

  it('stands still exits with its own code', async ({ expect }) => {
    const [name, dir] = [fresh(), folder()];
    const script = `echo $$ > ${dir}/pid; while ! test -e ${dir}/end; do sleep 0.02; done; exit 5`;
    const running = await start(redis.url, ['run', name, '--', 'sh', '-c', script], join(dir, 'pid'));
    process.kill(guardianOf(running.program.child.pid as number), 'SIGSTOP');
    await locks(redis.url, 'run', 'x', '--', 'touch', `${dir}/end`);
    expect((await running.program.outcome).code).toBe(5);
  });
});
