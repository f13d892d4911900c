import { expect, test } from 'vitest';
import { call, open, permit, queue, request, rowsIn, shared, take, until } from './fixture.ts';
import { RemoteProcess } from './remote-process.ts';

test('permits add up to their limit, each with its own token and release', async () => {
  const { backend } = open();
  const one = await take(backend, permit('a', 3));
  const two = await take(backend, permit('a', 3, 2));
  expect(two.fencingToken).toBeGreaterThan(one.fencingToken ?? 0n);
  expect(await backend.attempt(permit('a', 3), false, call)).toEqual({ status: 'contended' });
  expect(await backend.release(one, call)).toBe('released');
  expect(await backend.release(one, call)).toBe('not-held');
  await take(backend, permit('a', 3));
  expect((await backend.attempt(permit('a', 3), false, call)).status).toBe('contended');
});

test('an expired permit is free again, once', async () => {
  const { backend, path } = open();
  await take(backend, permit('a', 2, 1, 60_000));
  const short = await take(backend, permit('a', 2, 1, 20));
  await until(async () => (await backend.inspect('a', call)).holders.length === 1);
  await take(backend, permit('a', 2));
  expect((await backend.attempt(permit('a', 2), false, call)).status).toBe('contended');
  // Its late release returns nothing a second time.
  expect(await backend.release(short, call)).toBe('not-held');
  expect((await backend.attempt(permit('a', 2), false, call)).status).toBe('contended');
  expect(rowsIn(path).holds).toBe(2);
});

test('a heavy permit at the head is not overtaken by lighter ones', async () => {
  const { backend } = open();
  const held = [await take(backend, permit('a', 3)), await take(backend, permit('a', 3))];
  const heavy = await queue(backend, permit('a', 3, 3));
  const light = await queue(backend, permit('a', 3));
  expect((await backend.attempt(permit('a', 3), false, call)).status).toBe('contended');
  await backend.release(held[0] as never, call);
  expect((await backend.inspect('a', call)).waiters).toHaveLength(2);
  await backend.release(held[1] as never, call);
  await backend.release(await heavy.granted, call);
  await light.granted;
});

test('a released weight lets all enter at once who fit together, and no more', async () => {
  const { backend } = open();
  const heavy = await take(backend, permit('a', 4, 4));
  const queued = [];
  for (const weight of [1, 2, 1, 1]) queued.push(await queue(backend, permit('a', 4, weight)));
  await backend.release(heavy, call);
  const { holders, waiters } = await backend.inspect('a', call);
  expect(holders.map(({ mode }) => mode.kind === 'permit' && mode.weight)).toEqual([1, 2, 1]);
  expect(waiters).toHaveLength(1);
  const [first] = await Promise.all(queued.slice(0, 3).map(({ granted }) => granted));
  await backend.release(first as never, call);
  await queued[3]?.granted;
});

test('waiters of several processes use up the limit together, in order, and never go beyond it', async () => {
  const { backend, path } = open();
  const remotes = [new RemoteProcess(path), new RemoteProcess(path)] as const;
  await Promise.all(remotes.map((remote) => remote.ready()));
  const mode = { kind: 'permit', limit: 3, weight: 1 } as const;
  const all = await take(backend, permit('a', 3, 3));
  const first = await remotes[0].wait('a', mode);
  const here = await queue(backend, permit('a', 3));
  const third = await remotes[1].wait('a', mode);
  const fourth = await queue(backend, permit('a', 3));
  await backend.release(all, call);
  const tokens = await Promise.all([first.granted, here.granted, third.granted]);
  expect((await backend.inspect('a', call)).holders).toHaveLength(3);
  expect(fourth.entered).toBe(false);
  expect(await remotes[0].release(tokens[0])).toBe('released');
  await fourth.granted;
});

test('the permits of a waiter in another process are kept for it', async () => {
  const { backend, path } = open();
  const other = open(path).backend;
  const held = await take(backend, permit('a', 2, 2));
  const elsewhere = permit('a', 2);
  await other.attempt(elsewhere, true, call);
  const here = [await queue(backend, permit('a', 2)), await queue(backend, permit('a', 2))];
  await backend.release(held, call);
  await here[0]?.granted;
  expect((await backend.inspect('a', call)).waiters).toHaveLength(2);
  expect(here[1]?.entered).toBe(false);
  expect((await other.attempt(elsewhere, true, call)).status).toBe('granted');
});

test('another limit or mode beside a living one is a conflict, and leaves nothing', async () => {
  const { backend } = open();
  const held = await take(backend, permit('a', 2));
  for (const wanted of [permit('a', 3), request('a'), shared('a')]) {
    for (const enqueue of [true, false]) {
      expect(await backend.attempt(wanted, enqueue, call)).toEqual({
        status: 'conflict',
        with: { kind: 'permit', limit: 2, weight: 1 },
      });
    }
  }
  expect((await backend.inspect('a', call)).waiters).toEqual([]);
  await backend.release(held, call);
  const writer = await take(backend, request('a'));
  expect(await backend.attempt(permit('a', 2), true, call)).toEqual({
    status: 'conflict',
    with: { kind: 'exclusive' },
  });
  await backend.release(writer, call);
  await take(backend, permit('a', 3));
});

test('a waiter is in conflict as a holder is, for as long as it lives', async () => {
  const { backend, path } = open();
  const other = open(path).backend;
  const held = await take(backend, permit('a', 2, 2, 60_000));
  const waiting = permit('a', 2);
  await other.attempt(waiting, true, call);
  await backend.release(held, call);
  expect(await backend.attempt(permit('a', 5), true, call)).toMatchObject({ status: 'conflict' });
  expect(await backend.attempt(request('a'), true, call)).toMatchObject({ status: 'conflict' });
  expect(await backend.resize('a', 4, call)).toEqual({ status: 'set' });
  // The waiter may ask with the limit it knows.
  const attempt = await other.attempt(waiting, true, call);
  expect(attempt.status).toBe('granted');
  expect((await backend.inspect('a', call)).holders).toMatchObject([{ mode: { limit: 4, weight: 1 } }]);
  // So may the holder.
  expect((await other.attempt(waiting, true, call)).status).toBe('granted');
});

test('a raised limit lets in the waiters that fit now, with the new limit', async () => {
  const { backend, path } = open();
  const other = open(path).backend;
  await take(backend, permit('a', 1));
  const here = await queue(backend, permit('a', 1));
  const there = await queue(other, permit('a', 1));
  const last = await queue(backend, permit('a', 1));
  expect(await backend.resize('a', 3, call)).toEqual({ status: 'set' });
  await Promise.all([here.granted, there.granted]);
  const { holders, waiters } = await backend.inspect('a', call);
  expect(holders.map(({ mode }) => mode)).toEqual(Array(3).fill({ kind: 'permit', limit: 3, weight: 1 }));
  expect(waiters).toMatchObject([{ mode: { limit: 3 } }]);
  expect(last.entered).toBe(false);
  expect(await backend.attempt(permit('a', 1), false, call)).toMatchObject({ status: 'conflict' });
});

test('a lowered limit ends no hold, and grants nothing until the weights fit', async () => {
  const { backend } = open();
  const grants = [];
  for (let n = 0; n < 3; n += 1) grants.push(await take(backend, permit('a', 3)));
  const waiting = await queue(backend, permit('a', 3));
  expect(await backend.resize('a', 1, call)).toEqual({ status: 'set' });
  expect((await backend.inspect('a', call)).holders).toHaveLength(3);
  for (const grant of grants.slice(0, 2)) await backend.release(grant, call);
  expect((await backend.inspect('a', call)).waiters).toHaveLength(1);
  await backend.release(grants[2] as never, call);
  await waiting.granted;
});

test('a resize is a conflict beside the other modes, and stores nothing for an unused name', async () => {
  const { backend, path } = open();
  expect(await backend.resize('a', 3, call)).toEqual({ status: 'set' });
  expect(rowsIn(path)).toEqual({ holds: 0, waiters: 0, clients: 0 });
  const reader = await take(backend, shared('a'));
  expect(await backend.resize('a', 3, call)).toEqual({ status: 'conflict', with: { kind: 'shared' } });
  await backend.release(reader, call);
  await take(backend, request('a'));
  expect(await backend.resize('a', 3, call)).toEqual({ status: 'conflict', with: { kind: 'exclusive' } });
});

test('waiters that were passed over do not come back beside holders that they are in conflict with', async () => {
  const { backend, path } = open();
  const remote = new RemoteProcess(path);
  const held = await take(backend, request('a', 60_000));
  await remote.wait('a');
  remote.child.kill('SIGSTOP');
  await backend.release(held, call);
  const semaphore = await until(async () => {
    const attempt = await backend.attempt(permit('a', 2), false, call);
    return attempt.status === 'granted' ? attempt.grant : undefined;
  });
  remote.child.kill('SIGCONT');
  // The waiter notices by itself that it was passed over, and gets the conflict.
  await until(() => rowsIn(path).waiters === 0);
  expect((await backend.inspect('a', call)).waiters).toEqual([]);
  expect(await backend.attempt(permit('a', 2), false, call)).toMatchObject({ status: 'granted' });
  await backend.release(semaphore, call);
});
