import type { Grant } from '@locks/core/backend';
import { expect, onTestFinished, test, vi } from 'vitest';
import { Transactions } from '../src/transactions.ts';
import { acquire, call, callFor, open, request, rowsIn, take, until } from './fixture.ts';
import { RemoteProcess } from './remote-process.ts';

async function waiters(backend: ReturnType<typeof open>['backend'], resource: string): Promise<number> {
  return (await backend.inspect(resource, call)).waiters.length;
}

test('first come, first served in one process, in the transaction of the release', async () => {
  const { backend } = open();
  let held: Grant = await take(backend, request('a'));
  const order: number[] = [];
  const all: Promise<void>[] = [];
  for (let n = 0; n < 20; n += 1) {
    const wanted = request('a');
    expect((await backend.attempt(wanted, true, call)).status).toBe('contended');
    all.push(
      acquire(backend, wanted).then(async (grant) => {
        order.push(n);
        held = grant;
      }),
    );
  }
  for (let n = 0; n < 20; n += 1) {
    await backend.release(held, call);
    await until(() => order.length === n + 1);
  }
  await Promise.all(all);
  expect(order).toEqual(Array.from({ length: 20 }, (_, n) => n));
});

test('a single attempt never overtakes a live queue', async () => {
  const { backend, path } = open();
  const other = open(path).backend;
  const grant = await take(backend, request('a'));
  const queued = request('a');
  await other.attempt(queued, true, call);
  await backend.release(grant, call);
  expect((await backend.attempt(request('a'), false, call)).status).toBe('contended');
  expect(await waiters(backend, 'a')).toBe(1);
  expect((await other.attempt(queued, true, call)).status).toBe('granted');
});

test('first come, first served over three processes', async () => {
  const { backend, path } = open();
  const remotes = [new RemoteProcess(path), new RemoteProcess(path), new RemoteProcess(path)];
  await Promise.all(remotes.map((remote) => remote.ready()));
  const first = await take(backend, request('a'));
  const order: number[] = [];
  const done: Promise<unknown>[] = [];
  for (let n = 0; n < 9; n += 1) {
    const remote = remotes[n % 3] as RemoteProcess;
    const { granted } = await remote.wait('a');
    done.push(
      granted.then((token) => {
        order.push(n);
        return remote.release(token);
      }),
    );
  }
  await backend.release(first, call);
  expect(await Promise.all(done)).toEqual(Array(9).fill('released'));
  expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
});

test('a wait ends at its deadline and at its abort, and leaves nothing once abandoned', async () => {
  const { backend } = open();
  const grant = await take(backend, request('a'));
  const late = request('a');
  await backend.attempt(late, true, call);
  expect(await backend.awaitTurn?.(late, callFor(30))).toBeUndefined();
  await backend.abandon(late, call);
  const aborted = request('a');
  const controller = new AbortController();
  await backend.attempt(aborted, true, call);
  const wait = backend.awaitTurn?.(aborted, { ...call, signal: controller.signal });
  controller.abort();
  expect(await wait).toBeUndefined();
  await backend.abandon(aborted, call);
  expect(await waiters(backend, 'a')).toBe(0);
  await backend.release(grant, call);
  await take(backend, request('a'));
});

test('an entry that core forgot without an abandon does not block the queue', async () => {
  const { backend } = open();
  const grant = await take(backend, request('a'));
  await backend.attempt(request('a'), true, call);
  const next = acquire(backend, request('a'), callFor(10_000));
  await until(async () => (await waiters(backend, 'a')) === 2);
  await backend.release(grant, call);
  await next;
});

test('the expiry of a dead holder is noticed without a message', async () => {
  const { backend, path } = open();
  const remote = new RemoteProcess(path);
  await remote.acquire('a', 300);
  remote.child.kill('SIGKILL');
  const before = performance.now();
  await acquire(backend, request('a'), callFor(10_000));
  expect(performance.now() - before).toBeLessThan(2_000);
});

test('the end of a lease is not waited for in the rhythm of heartbeats', async () => {
  const { backend, path } = open();
  const other = open(path).backend;
  const polls = vi.spyOn(Transactions.prototype, 'poll');
  onTestFinished(() => polls.mockRestore());
  let late = 0;
  for (let round = 0; round < 6; round += 1) {
    // The same holds for a lease that was handed off in this process, after a hold that had long to live.
    const long = await take(backend, request('a', 60_000));
    const short = acquire(backend, request('a', 50));
    await until(async () => (await waiters(backend, 'a')) === 1);
    const next = acquire(round % 2 === 0 ? backend : other, request('a'));
    await until(async () => (await waiters(backend, 'a')) === 2);
    const seen = polls.mock.calls.length;
    // Each poller knows of 60 s.
    await until(() => new Set(polls.mock.contexts.slice(seen)).size === 1 + (round % 2));
    await backend.release(long, call);
    const { countedFrom } = await short;
    const grant = await next;
    late += performance.now() - (countedFrom + 50);
    await backend.release(grant, call);
  }
  expect(late).toBeLessThan(6 * 150);
});

// A process that has ended is noticed at the next poll; one that stands still has 2 s until its next heartbeat.
test.for([
  ['SIGKILL', 1_500],
  ['SIGSTOP', 4_000],
] as const)('a waiter ended by %s in the queue is passed over within %i ms', async ([signal, boundMs]) => {
  const { backend, path } = open();
  const grant = await take(backend, request('a', 60_000));
  const remote = new RemoteProcess(path);
  await remote.wait('a');
  const next = acquire(backend, request('a'), callFor(20_000));
  await until(async () => (await waiters(backend, 'a')) === 2);
  remote.child.kill(signal);
  await backend.release(grant, call);
  const before = performance.now();
  await next;
  expect(performance.now() - before).toBeLessThan(boundMs);
});

test('a single attempt gets past the waiters of a process that stands still', async () => {
  const { backend, path } = open();
  const grant = await take(backend, request('a', 60_000));
  const remote = new RemoteProcess(path);
  await remote.wait('a');
  remote.child.kill('SIGSTOP');
  await backend.release(grant, call);
  expect(await backend.attempt(request('a'), false, call)).toEqual({ status: 'contended' });
  await until(async () => (await backend.attempt(request('a'), false, call)).status === 'granted');
});

test('a process that stood still for so long that it was passed over waits again and is served', async () => {
  const { backend, path } = open();
  const grant = await take(backend, request('a', 60_000));
  const remote = new RemoteProcess(path);
  const { granted } = await remote.wait('a');
  remote.child.kill('SIGSTOP');
  await until(async () => (await waiters(backend, 'a')) === 0);
  const overtaker = acquire(backend, request('a'));
  await until(async () => (await waiters(backend, 'a')) === 1);
  // The heartbeat of the other process has removed it.
  await until(() => rowsIn(path).waiters === 1);
  await backend.release(grant, call);
  const second = await overtaker;
  remote.child.kill('SIGCONT');
  await until(async () => (await waiters(backend, 'a')) === 1);
  await backend.release(second, call);
  expect(await granted).toBeGreaterThan(second.fencingToken ?? 0n);
});

test('no wake-up is lost over 2000 hand-offs between two backends of eight waiters each', async () => {
  const { backend, path } = open();
  const other = open(path).backend;
  let inside = 0;
  let last = 0n;
  await Promise.all(
    Array.from({ length: 16 }, async (_, n) => {
      const mine = n % 2 === 0 ? backend : other;
      for (let turn = 0; turn < 125; turn += 1) {
        const grant = await acquire(mine, request('a'), callFor(60_000));
        inside += 1;
        expect(inside).toBe(1);
        expect(grant.fencingToken).toBeGreaterThan(last);
        last = grant.fencingToken ?? 0n;
        inside -= 1;
        expect(await mine.release(grant, call)).toBe('released');
      }
    }),
  );
  expect(await backend.inspect('a', call)).toEqual({ name: 'a', holders: [], waiters: [] });
});

test('close ends waits and refuses what comes after', async () => {
  const { backend } = open();
  await take(backend, request('a'));
  const queued = request('a');
  await backend.attempt(queued, true, call);
  const wait = backend.awaitTurn?.(queued, call);
  await backend.close();
  expect(await wait).toBeUndefined();
  await expect(backend.attempt(request('a'), false, call)).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
});

test('closing leaves no waiter in the file', async () => {
  const { backend, path } = open();
  const other = open(path).backend;
  await take(backend, request('a'));
  await other.attempt(request('a'), true, call);
  expect(await waiters(backend, 'a')).toBe(1);
  await other.close();
  expect(rowsIn(path)).toEqual({ holds: 1, waiters: 0, clients: 0 });
});
