import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { startRedis, waitUntil } from '@locks/test-servers';
import { afterAll, describe, expect, it } from 'vitest';
import { folder, isAlive, locks, locksHere, MAIN, pidIn, Program, textIn } from './program.ts';
import { TestRedis } from './started-stores.ts';

const redis = new TestRedis();
/** What a failed test leaves behind. */
const started: number[] = [];
let count = 0;
const fresh = () => `job-${++count}`;

afterAll(() => {
  for (const pid of started) if (isAlive(pid)) process.kill(pid, 'SIGKILL');
});

/** A command that writes its process id and ignores SIGTERM, and a grandchild in a session of its own that does so too. */
function stubborn(dir: string): string[] {
  const script = `trap '' TERM
    setsid sh -c "trap '' TERM; echo \\$\\$ > ${dir}/grandchild; while :; do sleep 0.1; done" &
    echo $$ > ${dir}/child; while :; do sleep 0.1; done`;
  return ['sh', '-c', script];
}

async function startStubborn(name: string, ttl: string): Promise<{ program: Program; pids: number[] }> {
  const dir = folder();
  const program = new Program(['run', name, '--ttl', ttl, '--', ...stubborn(dir)], redis.url);
  const files = ['child', 'grandchild'].map((file) => join(dir, file));
  await waitUntil(() => files.every((file) => pidIn(file) !== undefined), { what: 'the command to run' });
  const pids = files.map((file) => pidIn(file) as number);
  started.push(...pids, program.child.pid as number);
  return { program, pids };
}

describe.concurrent('locks run', () => {
  it('runs the command while the lock is held, passes its streams and its exit code, and tells it the lock', async ({
    expect,
  }) => {
    const name = fresh();
    const script =
      'read line; echo "$line of $LOCK_NAME with $LOCK_TOKEN until $LOCK_EXPIRES"; echo oh >&2; exit 7';
    const outcome = await new Program(['run', name, '--', 'sh', '-c', script], redis.url, 'input\n').outcome;
    expect(outcome).toMatchObject({ code: 7, stderr: 'oh\n' });
    expect(outcome.stdout).toMatch(
      new RegExp(`^input of ${name} with \\d+ until \\d{4}-\\d\\d-\\d\\dT.*Z\n$`),
    );
    expect(await redis.locks.isLocked(name)).toBe(false);
  });

  it('waits for its turn, and lets one in at a time', async ({ expect }) => {
    const [name, dir] = [fresh(), folder()];
    const script = `mkdir ${dir}/inside && sleep 0.2 && rmdir ${dir}/inside`;
    const outcomes = await Promise.all(
      Array.from({ length: 5 }, () => locks(redis.url, 'run', name, '--', 'sh', '-c', script)),
    );
    expect(outcomes.map(({ code, stderr }) => [code, stderr])).toEqual(outcomes.map(() => [0, '']));
  });

  it('gives up with 75 when the lock is not free in time, and names its holder', async ({ expect }) => {
    const name = fresh();
    await using _lease = await redis.locks.lock(name).acquire({ label: 'the holder' });
    const [at, within] = await Promise.all([
      locksHere(redis.url, 'run', name, '--no-wait', '--', 'true'),
      locksHere(redis.url, 'run', name, '--wait', '1s', '--', 'true'),
    ]);
    expect([at.code, within.code]).toEqual([75, 75]);
    // The command asks who holds for 100 ms: a busy machine may need another try.
    const { stderr } = at;
    await waitUntil(
      async () =>
        [stderr, (await locksHere(redis.url, 'run', name, '--no-wait', '--', 'true')).stderr].some((text) =>
          text.includes('the holder'),
        ),
      { what: 'the name of the holder' },
    );
  });

  it('shares the lock, and takes permits', async ({ expect }) => {
    const [shared, permits] = [fresh(), fresh()];
    await using _reader = await redis.locks.readWriteLock(shared).read.acquire();
    await using _one = await redis.locks.semaphore(permits, 2).acquire();
    expect((await locksHere(redis.url, 'run', shared, '--no-wait', '--shared', '--', 'true')).code).toBe(0);
    expect((await locksHere(redis.url, 'run', shared, '--no-wait', '--', 'true')).code).toBe(75);
    expect(
      (await locksHere(redis.url, 'run', permits, '--no-wait', '--permits', '2', '--', 'true')).code,
    ).toBe(0);
    const wrong = await locksHere(redis.url, 'run', permits, '--no-wait', '--permits', '3', '--', 'true');
    expect(wrong).toMatchObject({ code: 64, stderr: expect.stringContaining('2') });
  });

  it('passes signals on, and exits as the command does', async ({ expect }) => {
    const dir = folder();
    const script = `for s in HUP USR1 USR2 WINCH; do trap "echo $s >> ${dir}/got" $s; done
      echo $$ > ${dir}/child; while :; do sleep 0.05; done`;
    const program = new Program(['run', fresh(), '--', 'sh', '-c', script], redis.url);
    await waitUntil(() => pidIn(join(dir, 'child')), { what: 'the command to run' });
    for (const signal of ['SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'] as const) {
      program.child.kill(signal);
      await waitUntil(() => textIn(join(dir, 'got')).includes(`${signal.slice(3)}\n`), { what: signal });
    }
    program.child.kill('SIGTERM');
    expect((await program.outcome).code).toBe(128 + 15);
  });

  it('ends its wait at a signal, and leaves nothing in the queue', async ({ expect }) => {
    const name = fresh();
    await using _lease = await redis.locks.lock(name).acquire();
    const program = new Program(['run', name, '--', 'true'], redis.url);
    const waiting = async () => (await redis.locks.inspect(name)).waiters.length;
    await waitUntil(async () => (await waiting()) === 1, { what: 'the wait' });
    program.child.kill('SIGINT');
    expect((await program.outcome).code).toBe(128 + 2);
    expect(await waiting()).toBe(0);
  });

  it('says what it cannot run as a shell does: 127 and 126', async ({ expect }) => {
    expect((await locksHere(redis.url, 'run', fresh(), '--', 'no-such-command')).code).toBe(127);
    expect((await locksHere(redis.url, 'run', fresh(), '--', folder())).code).toBe(126);
  });

  it('ends a command whose lease was released by force, grandchildren too, with 70', async ({ expect }) => {
    const name = fresh();
    const { program, pids } = await startStubborn(name, '3s');
    await redis.locks.forceRelease(name);
    expect(await program.outcome).toMatchObject({ code: 70, stderr: expect.stringContaining('was lost') });
    await waitUntil(() => !pids.some(isAlive), { what: 'the end of all processes' });
  });
});

describe.concurrent('a command whose `locks run` renews no more', () => {
  it.each(['SIGKILL', 'SIGSTOP'] as const)(
    'has ended, grandchildren too, before another gets the lock, after %s',
    async (signal) => {
      const name = fresh();
      const { program, pids } = await startStubborn(name, '4s');
      program.child.kill(signal);
      await using _lease = await redis.locks.lock(name).acquire({ waitMs: 30_000 });
      expect(pids.filter(isAlive)).toEqual([]);
      program.child.kill('SIGKILL');
      await program.outcome;
    },
  );

  it('gets SIGTERM first, while a part of the lease is left', async ({ expect }) => {
    const [name, dir] = [fresh(), folder()];
    const script = `trap 'echo yes > ${dir}/asked; exit 0' TERM
      echo $$ > ${dir}/child; while :; do sleep 0.05; done`;
    const program = new Program(['run', name, '--ttl', '8s', '--', 'sh', '-c', script], redis.url);
    await waitUntil(() => pidIn(join(dir, 'child')), { what: 'the command to run' });
    program.child.kill('SIGSTOP');
    await waitUntil(() => textIn(join(dir, 'asked')), { what: 'the request to end' });
    expect(await redis.locks.isLocked(name)).toBe(true);
    program.child.kill('SIGKILL');
    await program.outcome;
  });
});

it('a command is ended when the store stands still for longer than the lease', async () => {
  await using own = await startRedis();
  const dir = folder();
  const args = ['run', 'frozen', '--ttl', '2s', '--', ...stubborn(dir)];
  const program = new Program(args, own.url);
  await waitUntil(() => pidIn(join(dir, 'grandchild')), { what: 'the command to run' });
  const pids = ['child', 'grandchild'].map((file) => pidIn(join(dir, file)) as number);
  await own.pause();
  expect((await program.outcome).code).toBe(70);
  await waitUntil(() => !pids.some(isAlive), { what: 'the end of all processes' });
  own.resume();
});

describe.runIf(process.platform === 'linux')('in a terminal', () => {
  const SELF = `"${process.execPath}" "${MAIN}"`;
  // `script` gives its command a terminal, and runs it in a shell, which `exec` replaces: some shells end at Ctrl-C with 130.
  const inTerminal = (command: string) =>
    spawn('script', ['-qec', `exec ${command}`, '/dev/null'], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, LOCKS_URL: redis.url },
    });

  it('stdin, stdout and stderr of the command stay the terminal, and the window size is passed on', async () => {
    const tty = 'for fd in 0 1 2; do test -t $fd && echo terminal $fd; done; read line; echo got $line';
    const terminal = inTerminal(`${SELF} run ${fresh()} -- sh -c '${tty}'`);
    let shown = '';
    terminal.stdout.on('data', (chunk) => (shown += String(chunk)));
    await waitUntil(() => shown.includes('terminal 2'), { what: 'the command to run' });
    terminal.stdin.write('a line\n');
    await waitUntil(() => shown.includes('got a line'), { what: 'the line to arrive' });
    expect(shown).toMatch(/terminal 0\s+terminal 1\s+terminal 2/);
    terminal.kill('SIGKILL');
  });

  it('Ctrl-C reaches the command', async () => {
    const dir = folder();
    const script = `trap "echo int > ${dir}/got; exit 3" INT; echo $$ > ${dir}/child; while :; do sleep 0.05; done`;
    const terminal = inTerminal(`${SELF} run ${fresh()} -- sh -c '${script}'`);
    await waitUntil(() => pidIn(join(dir, 'child')), { what: 'the command to run' });
    terminal.stdin.write('\u0003');
    await waitUntil(() => textIn(join(dir, 'got')) === 'int\n', { what: 'the signal' });
    const [code] = (await once(terminal, 'exit')) as [number];
    expect(code).toBe(3);
  });

  it('the command ends when the terminal is killed, and the lock is free', async () => {
    const [name, dir] = [fresh(), folder()];
    const script = `echo $$ > ${dir}/child; while :; do sleep 0.05; done`;
    const terminal = inTerminal(`${SELF} run ${name} -- sh -c '${script}'`);
    const pid = await waitUntil(() => pidIn(join(dir, 'child')), { what: 'the command to run' });
    terminal.kill('SIGKILL');
    await waitUntil(() => !isAlive(pid), { what: 'the end of the command' });
    await waitUntil(async () => !(await redis.locks.isLocked(name)), { what: 'the release' });
  });
});
