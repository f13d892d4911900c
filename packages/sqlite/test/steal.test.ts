import type { AcquireRequest } from '@locks/core/backend';
import { expect, test } from 'vitest';
import { acquire, call, open, permit, queue, request, rowsIn, shared, take, until } from './fixture.ts';

function steal(wanted: AcquireRequest): AcquireRequest {
  return { ...wanted, steal: true };
}

test('a steal takes the resource from its holder, who learns of it, ahead of a queue that keeps its order', async () => {
  const { backend } = open();
  const stolen = await take(backend, request('a'));
  const first = await queue(backend, request('a'));
  const second = await queue(backend, request('a'));
  const stealing = await take(backend, steal(request('a')));
  expect(stealing.fencingToken).toBeGreaterThan(stolen.fencingToken ?? 0n);
  expect(await backend.renew([{ grant: stolen, ttlMs: 1_000 }], call)).toEqual([
    { status: 'lost', reason: 'taken-over' },
  ]);
  expect(await backend.release(stolen, call)).toBe('not-held');
  expect(first.entered).toBe(false);
  expect((await backend.inspect('a', call)).waiters).toHaveLength(2);
  await backend.release(stealing, call);
  await backend.release(await first.granted, call);
  await second.granted;
});

test('a steal ends all shares, whose owners learn of it even after a release, while others share again', async () => {
  const { backend, path } = open();
  const stolen = [await take(backend, shared('a', 500)), await take(backend, shared('a', 60_000))] as const;
  const stealing = await take(backend, steal(shared('a')));
  expect((await backend.inspect('a', call)).holders).toHaveLength(1);
  await backend.release(stealing, call);
  await take(backend, shared('a'));
  expect(await backend.renew([{ grant: stolen[1], ttlMs: 1_000 }], call)).toEqual([
    { status: 'lost', reason: 'taken-over' },
  ]);
  expect(await backend.downgrade(stolen[1], call)).toEqual({ status: 'lost', reason: 'taken-over' });
  // The sweep of expired holds leaves the marks of stolen ones.
  for (let n = 0; n < 300; n += 1) await backend.release(await take(backend, request('b')), call);
  expect(await backend.renew([{ grant: stolen[1], ttlMs: 1_000 }], call)).toMatchObject([
    { reason: 'taken-over' },
  ]);
  // The mark of a stolen hold goes with its release, or at the time when the hold would have ended.
  await backend.release(stolen[1], call);
  await until(async () => {
    await backend.release(await take(backend, shared('a')), call);
    return rowsIn(path).holds === 1;
  });
});

test('a stolen hold is not forced to end a second time, and its id may ask again', async () => {
  const { backend } = open();
  const wanted = shared('a');
  const stolen = await take(backend, wanted);
  const stealing = await take(backend, steal(shared('a')));
  expect(await backend.forceRelease('a', wanted.acquisitionId, call)).toEqual([]);
  expect(await backend.renew([{ grant: stolen, ttlMs: 1_000 }], call)).toMatchObject([
    { reason: 'taken-over' },
  ]);
  await backend.release(stealing, call);
  const again = await take(backend, wanted);
  expect(again.fencingToken).toBeGreaterThan(stealing.fencingToken ?? 0n);
});

test('a steal repeated with one id takes nothing twice', async () => {
  const { backend } = open();
  await take(backend, request('a'));
  const wanted = steal(request('a'));
  const stealing = await take(backend, wanted);
  expect((await take(backend, wanted)).fencingToken).toBe(stealing.fencingToken);
});

test('a waiter that steals leaves the queue', async () => {
  const { backend } = open();
  await take(backend, request('a'));
  const wanted = request('a');
  const waiter = await queue(backend, wanted);
  const stealing = await take(backend, steal(wanted));
  await backend.release(stealing, call);
  expect(await backend.inspect('a', call)).toEqual({ name: 'a', holders: [], waiters: [] });
  await backend.abandon(wanted, call);
  waiter.granted.catch(() => undefined);
});

test('several are taken all or none, overtake nobody, and repeated give the same', async () => {
  const { backend, path } = open();
  const wanted = [request('a'), shared('b'), permit('c', 2, 2)];
  const held = await take(backend, permit('c', 2));
  expect(await backend.attemptMany(wanted, call)).toBeUndefined();
  expect(rowsIn(path)).toMatchObject({ holds: 1, waiters: 0 });
  const behind = permit('c', 2, 2);
  await backend.attempt(behind, true, call);
  await backend.release(held, call);
  // The queue is live, though its head has not attempted again yet.
  expect(await backend.attemptMany(wanted, call)).toBeUndefined();
  await backend.abandon(behind, call);
  const grants = await backend.attemptMany(wanted, call);
  expect(grants?.map(({ request }) => request)).toEqual(wanted);
  const again = await backend.attemptMany(wanted, call);
  expect(again?.map(({ fencingToken }) => fencingToken)).toEqual(
    grants?.map(({ fencingToken }) => fencingToken),
  );
  expect(new Set(grants?.map(({ fencingToken }) => fencingToken)).size).toBe(3);
  for (const grant of grants ?? []) expect(await backend.release(grant, call)).toBe('released');
});

test('several are not taken where one is in conflict with what lives', async () => {
  const { backend, path } = open();
  await take(backend, permit('b', 2));
  expect(await backend.attemptMany([request('a'), request('b')], call)).toBeUndefined();
  expect(await backend.attemptMany([request('a'), permit('b', 3)], call)).toBeUndefined();
  expect(rowsIn(path).holds).toBe(1);
});

test('sets of many processes, in any order of their names, exclude each other and end', async () => {
  const { backend, path } = open();
  const other = open(path).backend;
  const inside = new Map<string, number>();
  await Promise.all(
    Array.from({ length: 8 }, async (_, n) => {
      const mine = n % 2 === 0 ? backend : other;
      const names = n % 4 < 2 ? ['a', 'b', 'c'] : ['c', 'a', 'd'];
      for (let turn = 0; turn < 20; turn += 1) {
        const grants = await until(() =>
          mine.attemptMany(
            names.map((name) => request(name)),
            call,
          ),
        );
        for (const name of names) {
          expect(inside.get(name)).toBeUndefined();
          inside.set(name, n);
        }
        await new Promise((resolve) => setImmediate(resolve));
        for (const name of names) inside.delete(name);
        await Promise.all(grants.map((grant) => mine.release(grant, call)));
      }
    }),
  );
  await acquire(backend, request('a'));
});

test('a steal in a mode that those who wait exclude is refused, and ends no hold, also an exclusive one', async () => {
  const { backend } = open();
  const held = await take(backend, request('a'));
  const waiter = await queue(backend, request('a'));
  expect(await backend.attempt(steal(permit('a', 3)), false, call)).toEqual({
    status: 'conflict',
    with: { kind: 'exclusive' },
  });
  expect(await backend.release(held, call)).toBe('released');
  await waiter.granted;
});
