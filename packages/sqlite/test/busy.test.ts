import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test, vi } from 'vitest';
import { BusyBackoff } from '../src/busy-backoff.ts';
import { Transactions } from '../src/transactions.ts';
import { call, callFor, open, request, take, temporaryFolder, until } from './fixture.ts';
import { RemoteProcess } from './remote-process.ts';

/** Takes the write lock of the file, as a process does that is stopped in the middle of a transaction. */
function occupy(path: string): DatabaseSync {
  const db = new DatabaseSync(path);
  db.exec('BEGIN IMMEDIATE');
  onTestFinished(() => {
    if (db.isOpen) db.close();
  });
  return db;
}

test('a busy file never blocks the event loop, and the call succeeds once it is free', async () => {
  const { backend, path } = open();
  await take(backend, request('first'));
  const other = occupy(path);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const waiting = Promise.all([take(backend, request('a')), take(backend, request('b'))]);
  for (let ticks = 0; ticks < 100; ticks += 1) await new Promise((resolve) => setTimeout(resolve, 1));
  delay.disable();
  expect(delay.percentile(50) / 1e6).toBeLessThan(50);
  other.exec('ROLLBACK');
  const [a, b] = await waiting;
  expect(a.fencingToken).not.toBe(b.fencingToken);
});

test('a file that stays busy fails the call at its deadline, retryably, and the call never runs later', async () => {
  const { backend, path } = open();
  await take(backend, request('first'));
  const other = occupy(path);
  const error = await backend.attempt(request('a'), true, callFor(50)).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: 'BUSY' });
  expect(backend.isRetryable(error)).toBe(true);
  other.exec('ROLLBACK');
  expect(await backend.inspect('a', call)).toEqual({ name: 'a', holders: [], waiters: [] });
});

test('a waiter that is enqueued together with a heartbeat, after the file was busy, stays in the queue', async () => {
  const { backend, path } = open();
  await take(backend, request('a', 60_000));
  await backend.attempt(request('a'), true, call);
  const other = occupy(path);
  const wanted = request('a');
  const writes = vi.spyOn(Transactions.prototype, 'write');
  onTestFinished(() => writes.mockRestore());
  const attempt = backend.attempt(wanted, true, call);
  await until(() => writes.mock.calls.length === 2); // the heartbeat came
  other.exec('ROLLBACK');
  expect((await attempt).status).toBe('contended');
  expect((await backend.inspect('a', call)).waiters.map(({ acquisitionId }) => acquisitionId)).toContain(
    wanted.acquisitionId,
  );
});

test('an abort ends a call that waits for a busy file', async () => {
  const { backend, path } = open();
  await take(backend, request('first'));
  const other = occupy(path);
  const controller = new AbortController();
  const attempt = backend.attempt(request('a'), true, { ...call, signal: controller.signal });
  controller.abort(new Error('enough'));
  await expect(attempt).rejects.toThrow('enough');
  other.exec('ROLLBACK');
  expect((await backend.inspect('a', call)).waiters).toEqual([]);
});

test('a file that is busy when it is first opened is waited for as well', async () => {
  const path = join(temporaryFolder(), 'locks.db');
  const other = occupy(path);
  const { backend } = open(path);
  const waiting = take(backend, request('a'));
  const late = backend.attempt(request('b'), false, callFor(30));
  await expect(late).rejects.toMatchObject({ code: 'BUSY' });
  other.exec('ROLLBACK');
  other.close();
  await waiting;
});

test('a try on a busy file is short at first, and grows with the time of waiting', async () => {
  const patience = new BusyBackoff();
  expect(patience.isWaiting).toBe(false);
  expect(patience.spinMs).toBe(0);
  // The first two tries come without a pause, and do not delay the event loop.
  expect([patience.failed(), patience.failed()]).toEqual([undefined, undefined]);
  expect(patience.spinMs).toBe(0);
  const pauses = Array.from({ length: 20 }, () => patience.failed() ?? 0);
  expect(pauses[0]).toBeLessThanOrEqual(1.5);
  expect(Math.max(...pauses)).toBeLessThanOrEqual(12);
  expect(Math.min(...pauses)).toBeGreaterThan(0);
  await until(() => patience.spinMs === 1);
  patience.succeeded();
  expect(patience.isWaiting).toBe(false);
  expect(patience.spinMs).toBe(0);
});

test('processes that never pause do not keep one another from the file', async () => {
  const path = join(temporaryFolder(), 'locks.db');
  const remotes = Array.from({ length: 6 }, () => new RemoteProcess(path));
  await Promise.all(remotes.map((remote) => remote.ready()));
  const hurries = remotes.map((remote) => remote.hurry());
  await until(
    async () => (await Promise.all(remotes.map((remote) => remote.turns()))).every((count) => count > 5),
    30_000,
  );
  await Promise.all(remotes.map((remote) => remote.stop()));
  for (const longestMs of await Promise.all(hurries)) expect(longestMs).toBeLessThan(5_000);
});

test('many processes make one file at once', async () => {
  for (let round = 0; round < 3; round += 1) {
    const path = join(temporaryFolder(), 'locks.db');
    const remotes = Array.from({ length: 8 }, () => new RemoteProcess(path));
    await Promise.all(remotes.map((remote) => remote.ready()));
    const tokens = await Promise.all(remotes.map((remote, n) => remote.acquire(`own ${n}`)));
    expect(new Set(tokens).size).toBe(8);
    for (const remote of remotes) remote.child.kill('SIGKILL');
  }
});

test('closing while the file is busy does not wait for it', async () => {
  const { backend, path } = open();
  await take(backend, request('first'));
  occupy(path);
  const attempt = backend.attempt(request('a'), true, call);
  await new Promise((resolve) => setImmediate(resolve));
  await backend.close();
  await expect(attempt).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
});
