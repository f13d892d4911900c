import { execFile } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { WakeFile } from '@locks/core/machine';
import { expect, onTestFinished, test, vi } from 'vitest';
import { SqliteQueue } from '../src/sqlite-queue.ts';
import { Transactions } from '../src/transactions.ts';
import {
  acquire,
  call,
  open,
  queue,
  request,
  rowsIn,
  shared,
  take,
  temporaryFolder,
  until,
} from './fixture.ts';
import { RemoteProcess } from './remote-process.ts';

const run = promisify(execFile);
const NEVER_POLLS = ['--import', new URL('./never-polls.ts', import.meta.url).href];

/** Processes whose waiters enter by a wake-up or not at all. */
async function startAll<Paths extends string[]>(
  ...paths: Paths
): Promise<{ [P in keyof Paths]: RemoteProcess }> {
  const all = paths.map((path) => new RemoteProcess(path, NEVER_POLLS));
  await Promise.all(all.map((remote) => remote.ready()));
  return all as { [P in keyof Paths]: RemoteProcess };
}

/** The wake files beside a lock file. */
function wakeFiles(path: string): string[] {
  const real = realpathSync(path);
  return readdirSync(dirname(real))
    .map((name) => join(dirname(real), name))
    .filter((name) => name.startsWith(`${real}-wake-`));
}

/** The wake file of the only client that waits. */
function onlyWakeFile(path: string): string {
  const [only = '', ...others] = wakeFiles(path);
  expect(others).toEqual([]);
  return only;
}

async function hasWokenItself(path: string): Promise<void> {
  await until(() => wakeFiles(path).every((file) => statSync(file).size > 0) && wakeFiles(path).length > 0);
}

test('a release wakes the next waiter in another process, which does not poll', async () => {
  const { backend, path } = open();
  const remotes = await startAll(path, path);
  const grant = await take(backend, request('a'));
  let release: () => Promise<string> = () => backend.release(grant, call);
  for (let n = 0; n < 20; n += 1) {
    const remote = remotes[n % 2] as RemoteProcess;
    const { granted } = await remote.wait('a');
    expect(await release()).toBe('released');
    const token = await granted;
    release = () => remote.release(token);
  }
});

test('a downgrade wakes the readers of all processes, whatever link names the file', async () => {
  const { backend: first, path } = open();
  await first.ping(call);
  const link = join(temporaryFolder(), 'link.db');
  symlinkSync(path, link);
  const { backend } = open(link);
  const grant = await take(backend, request('a'));
  const remotes = await startAll(path, path, link);
  const readers = await Promise.all(remotes.map((remote) => remote.wait('a', { kind: 'shared' })));
  expect(await backend.downgrade(grant, call)).toEqual({ status: 'held' });
  await Promise.all(readers.map(({ granted }) => granted));
  expect((await backend.inspect('a', call)).holders).toHaveLength(4);
});

test('an abandon of the head wakes those behind it', async () => {
  const { backend, path } = open();
  await take(backend, shared('a'));
  const writer = request('a');
  await backend.attempt(writer, true, call);
  const [remote] = await startAll(path);
  const { granted } = await remote.wait('a', { kind: 'shared' });
  await backend.abandon(writer, call);
  await granted;
});

test('a release passes over the waiter of a killed process, and wakes the next one', async () => {
  const { backend, path } = open();
  const grant = await take(backend, request('a'));
  const first = new RemoteProcess(path);
  await first.wait('a');
  first.child.kill('SIGKILL');
  await once(first.child, 'exit');
  const [second] = await startAll(path);
  const { granted } = await second.wait('a');
  await backend.release(grant, call);
  await granted;
});

test('a wake-up that is lost is made good by the poller', async () => {
  const { backend, path } = open();
  const remote = new RemoteProcess(path);
  const grant = await take(backend, request('a'));
  const { granted } = await remote.wait('a');
  await hasWokenItself(path);
  const { takeWoken } = SqliteQueue.prototype;
  const lost: number[] = [];
  vi.spyOn(SqliteQueue.prototype, 'takeWoken').mockImplementation(function (this: SqliteQueue) {
    lost.push(...takeWoken.call(this));
    return [];
  });
  onTestFinished(() => void vi.restoreAllMocks());
  await backend.release(grant, call);
  await granted;
  expect(lost).toHaveLength(1);
});

test('where files cannot be watched the poller works alone, and fast', async () => {
  const { backend, path } = open(undefined, { maxPollMs: 1_000 });
  const prepare = vi.spyOn(WakeFile.prototype, 'prepare').mockImplementation(() => undefined);
  const polls = vi.spyOn(Transactions.prototype, 'poll');
  onTestFinished(() => void vi.restoreAllMocks());
  const other = open(path).backend;
  const grant = await take(other, request('a'));
  const { granted } = await queue(backend, request('a'));
  const beats = await beatsOf(path, 4);
  expect(polls.mock.calls.length).toBeGreaterThan(4 * beats);
  await other.release(grant, call);
  await granted;
  expect(prepare).toHaveBeenCalled();
  expect(wakeFiles(path)).toEqual([]);
});

test('a waiter that can be woken polls seldom', async () => {
  const { backend, path } = open(undefined, { maxPollMs: 1_000 });
  const other = open(path).backend;
  const grant = await take(other, request('a'));
  const { granted } = await queue(backend, request('a'));
  await hasWokenItself(path);
  const polls = vi.spyOn(Transactions.prototype, 'poll');
  onTestFinished(() => polls.mockRestore());
  const beats = await beatsOf(path, 4);
  expect(polls.mock.calls.length).toBeLessThanOrEqual(2 * beats + 2);
  await other.release(grant, call);
  await granted;
});

/** Waits for heartbeats of the only client that waits. */
async function beatsOf(path: string, count: number): Promise<number> {
  const file = new DatabaseSync(path, { readOnly: true });
  onTestFinished(() => file.close());
  const read = file.prepare('SELECT alive_until AS until FROM clients');
  const ends = new Set<unknown>();
  await until(() => ends.add(read.get()?.until).size > count);
  return count;
}

test('the file that was removed while its owner stood still is made again', async () => {
  const { backend, path } = open();
  const grant = await take(backend, request('a', 60_000));
  const remote = new RemoteProcess(path);
  const { granted } = await remote.wait('a');
  const file = onlyWakeFile(path);
  remote.child.kill('SIGSTOP');
  // The heartbeat of another waiter removes what a silent client left.
  const other = acquire(backend, request('a'));
  await until(() => !existsSync(file));
  await until(() => rowsIn(path).clients === 1);
  remote.child.kill('SIGCONT');
  await until(() => existsSync(file) && statSync(file).size > 0);
  await backend.release(grant, call);
  await backend.release(await other, call);
  await granted;
});

test('the file of a killed waiter is removed by the next process', async () => {
  const { backend, path } = open();
  await take(backend, request('a'));
  const remote = new RemoteProcess(path);
  await remote.wait('a');
  const file = onlyWakeFile(path);
  remote.child.kill('SIGKILL');
  await once(remote.child, 'exit');
  await backend.close();
  // Its row and its file go when its silence has lasted long enough.
  await until(async () => {
    const next = open(path).backend;
    await next.release(await take(next, request('b')), call);
    await next.close();
    return !existsSync(file);
  });
  expect(rowsIn(path).clients).toBe(0);
});

test('close removes the file, and nothing else does while somebody waits', async () => {
  const { backend, path } = open();
  const other = open(path).backend;
  await take(other, request('a'));
  await queue(backend, request('a'));
  const file = onlyWakeFile(path);
  await beatsOf(path, 5);
  expect(existsSync(file)).toBe(true);
  await backend.close();
  expect(wakeFiles(path)).toEqual([]);
});

test('close removes the file also while another process writes', async () => {
  const { backend, path } = open();
  await take(backend, request('a'));
  await queue(backend, request('a'));
  onlyWakeFile(path);
  const writer = new DatabaseSync(path);
  onTestFinished(() => writer.close());
  writer.exec('BEGIN IMMEDIATE');
  await backend.close();
  expect(wakeFiles(path)).toEqual([]);
  expect(rowsIn(path).clients).toBe(1);
});

test('a process that never waits makes no file', async () => {
  const { backend, path } = open();
  const grant = await take(backend, request('a'));
  await backend.attempt(request('a'), false, call);
  await backend.release(grant, call);
  expect(wakeFiles(path)).toEqual([]);
});

test.for([0o600, 0o660, 0o666])('whoever may use the lock file (%o) may wake its waiters', async (mode) => {
  const { backend, path } = open();
  await take(backend, request('a'));
  chmodSync(path, mode);
  const before = process.umask(0o077);
  onTestFinished(() => void process.umask(before));
  await backend.attempt(request('a'), true, call);
  expect(statSync(onlyWakeFile(path)).mode & 0o777).toBe(mode);
});

test('a link or a pipe at the place of the file is not followed, nor waited for', async () => {
  const { backend, path } = open();
  const letter = join(temporaryFolder(), 'letter.txt');
  writeFileSync(letter, 'Dear reader');
  for (const plant of [
    async (file: string) => symlinkSync(letter, file),
    async (file: string) => run('mkfifo', [file]),
    async (file: string) => mkdirSync(file),
  ]) {
    const grant = await take(backend, request('a'));
    const remote = new RemoteProcess(path);
    const { granted } = await remote.wait('a');
    const file = onlyWakeFile(path);
    rmSync(file);
    await plant(file);
    expect(await backend.release(grant, call)).toBe('released');
    await remote.release(await granted);
    remote.child.kill('SIGKILL');
    rmSync(file, { recursive: true, force: true });
  }
  expect(readFileSync(letter, 'utf8')).toBe('Dear reader');
});
