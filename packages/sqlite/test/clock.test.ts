import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { MachineClock } from '@locks/core/machine';
import { expect, onTestFinished, test, vi } from 'vitest';
import { machineClock } from '../src/machine-clock.ts';
import { SqliteBackend } from '../src/sqlite-backend.ts';
import { call, open, request, take, temporaryFolder } from './fixture.ts';

const run = promisify(execFile);

function openWithClock(path: string, clock: MachineClock): SqliteBackend {
  const backend = new SqliteBackend({ path, synchronous: 'normal', maxPollMs: 25 }, () => clock);
  onTestFinished(() => backend.close());
  return backend;
}

function clockOf(boot: string, startMicros: number, bootIsExact = true): MachineClock {
  const started = process.hrtime.bigint();
  return {
    boot,
    bootIsExact,
    nowMicros: () => startMicros + Number((process.hrtime.bigint() - started) / 1000n),
  };
}

test('holds and waiters of an earlier boot are dead, and the token goes on rising', async () => {
  const path = join(temporaryFolder(), 'locks.db');
  const before = openWithClock(path, clockOf('first', 9e9));
  const grant = await take(before, request('a', 3_600_000));
  await before.attempt(request('a'), true, call);
  await before.close();
  const after = openWithClock(path, clockOf('second', 1e6));
  expect(await after.inspect('a', call)).toEqual({ name: 'a', holders: [], waiters: [] });
  const next = await take(after, request('a'));
  expect(next.fencingToken).toBeGreaterThan(grant.fencingToken ?? 0n);
});

test.for([true, false])(
  'wake files of an earlier boot are removed (boots can be told apart: %s)',
  async (isExact) => {
    const path = join(temporaryFolder(), 'locks.db');
    const before = openWithClock(path, clockOf(isExact ? 'first' : 'any', 9e9, isExact));
    await take(before, request('a', 3_600_000));
    await before.attempt(request('a'), true, call);
    expect(readdirSync(dirname(path)).filter((name) => name.includes('-wake-'))).toHaveLength(1);
    const after = openWithClock(path, clockOf(isExact ? 'second' : 'any', 1e6, isExact));
    await take(after, request('b'));
    expect(readdirSync(dirname(path)).filter((name) => name.includes('-wake-'))).toEqual([]);
  },
);

test('a file that another machine has taken over is reported, not used', async () => {
  const path = join(temporaryFolder(), 'locks.db');
  const here = openWithClock(path, clockOf('here', 9e9));
  await take(here, request('a'));
  const there = openWithClock(path, clockOf('there', 1e6));
  await take(there, request('b'));
  await expect(here.attempt(request('c'), false, call)).rejects.toMatchObject({ code: 'TWO_MACHINES' });
});

test('where boots cannot be told apart, a lease from a clock further on does not outlive its ttl', async () => {
  const path = join(temporaryFolder(), 'locks.db');
  const before = openWithClock(path, clockOf('any', 9e9, false));
  await take(before, request('a', 60_000));
  await before.close();
  const after = openWithClock(path, clockOf('any', 1e6, false));
  await take(after, request('a'));
});

test('where boots cannot be told apart, a live lease stays', async () => {
  const path = join(temporaryFolder(), 'locks.db');
  const clock = clockOf('any', 9e9, false);
  await take(openWithClock(path, clock), request('a', 60_000));
  expect(await openWithClock(path, clock).attempt(request('a'), false, call)).toEqual({
    status: 'contended',
  });
});

test('a step of the wall clock grants nothing twice and never sets the token back', async () => {
  const { backend } = open();
  const grant = await take(backend, request('a', 60_000));
  for (const wall of [Date.now() + 3_600_000, 0, Date.now() - 3_600_000]) {
    vi.spyOn(Date, 'now').mockReturnValue(wall);
    onTestFinished(() => void vi.restoreAllMocks());
    expect((await backend.attempt(request('a'), false, call)).status).toBe('contended');
    const other = await take(backend, request('b'));
    expect(other.fencingToken).toBeGreaterThan(grant.fencingToken ?? 0n);
    await backend.release(other, call);
  }
});

test('all processes read one clock, also from a time namespace of their own', async (context) => {
  const entry = new URL('../src/machine-clock.ts', import.meta.url).href;
  const program = `const { machineClock } = await import(${JSON.stringify(entry)});
    const clock = machineClock(); console.log(clock.boot, clock.nowMicros());`;
  const node = [process.execPath, '--input-type=module', '-e', program];
  const unshare = ['unshare', '--time', '--monotonic', '100000', '--fork', '--'];
  const variants = process.platform === 'linux' && process.getuid?.() === 0 ? [[], unshare] : [[]];
  for (const prefix of variants) {
    const [command = '', ...args] = [...prefix, ...node];
    const clock = machineClock();
    const before = clock.nowMicros();
    const { stdout } = await run(command, args);
    const [boot, micros] = stdout.trim().split(' ');
    expect(boot).toBe(clock.boot);
    expect(Number(micros)).toBeGreaterThanOrEqual(before);
    expect(Number(micros)).toBeLessThanOrEqual(clock.nowMicros());
  }
  await context.annotate(variants.length === 2 ? 'with a time namespace' : 'without: needs Linux and root');
});
