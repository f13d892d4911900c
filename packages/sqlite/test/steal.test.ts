import type { AcquireRequest } from '@locks/core/backend';
import { expect, test } from 'vitest';
import { acquire, call, open, permit, queue, request, rowsIn, shared, take, until } from './fixture.ts';

function steal(wanted: AcquireRequest): AcquireRequest {
  return { ...wanted, steal: true };
}

test('a thief takes it from its holder, who learns of it, ahead of a line that keeps its order', async () => {
  const { backend } = open();
  const robbed = await take(backend, request('a'));
  const first = await queue(backend, request('a'));
  const second = await queue(backend, request('a'));
  const thief = await take(backend, steal(request('a')));
  expect(thief.fencingToken).toBeGreaterThan(robbed.fencingToken ?? 0n);
  expect(await backend.renew([{ grant: robbed, ttlMs: 1_000 }], call)).toEqual([
    { status: 'lost', reason: 'taken-over' },
  ]);
  expect(await backend.release(robbed, call)).toBe('not-held');
  expect(first.entered).toBe(false);
  expect((await backend.inspect('a', call)).waiters).toHaveLength(2);
  await backend.release(thief, call);
  await backend.release(await first.granted, call);
  await second.granted;
});

test('all shares are robbed, and told even after the thief has gone, while others share again', async () => {
  const { backend, path } = open();
  const robbed = [await take(backend, shared('a', 500)), await take(backend, shared('a', 60_000))] as const;
  const thief = await take(backend, steal(shared('a')));
  expect((await backend.inspect('a', call)).holders).toHaveLength(1);
  await backend.release(thief, call);
  await take(backend, shared('a'));
  expect(await backend.renew([{ grant: robbed[1], ttlMs: 1_000 }], call)).toEqual([
    { status: 'lost', reason: 'taken-over' },
  ]);
  expect(await backend.downgrade(robbed[1], call)).toEqual({ status: 'lost', reason: 'taken-over' });
  // Nor does the sweep of what others left take away what tells them.
  for (let n = 0; n < 300; n += 1) await backend.release(await take(backend, request('b')), call);
  expect(await backend.renew([{ grant: robbed[1], ttlMs: 1_000 }], call)).toMatchObject([
    { reason: 'taken-over' },
  ]);
  // What is left to tell them goes with their release, and with the time they would have ended.
  await backend.release(robbed[1], call);
  await until(async () => {
    await backend.release(await take(backend, shared('a')), call);
    return rowsIn(path).holds === 1;
  });
});

test('a stolen hold is not forced to end a second time, and its id may ask again', async () => {
  const { backend } = open();
  const wanted = shared('a');
  const robbed = await take(backend, wanted);
  const thief = await take(backend, steal(shared('a')));
  expect(await backend.forceRelease('a', wanted.acquisitionId, call)).toEqual([]);
  expect(await backend.renew([{ grant: robbed, ttlMs: 1_000 }], call)).toMatchObject([
    { reason: 'taken-over' },
  ]);
  await backend.release(thief, call);
  const again = await take(backend, wanted);
  expect(again.fencingToken).toBeGreaterThan(thief.fencingToken ?? 0n);
});

test('a theft repeated with one id takes nothing twice', async () => {
  const { backend } = open();
  await take(backend, request('a'));
  const wanted = steal(request('a'));
  const thief = await take(backend, wanted);
  expect((await take(backend, wanted)).fencingToken).toBe(thief.fencingToken);
});

test('a waiter that turns thief leaves the line', async () => {
  const { backend } = open();
  await take(backend, request('a'));
  const wanted = request('a');
  const place = await queue(backend, wanted);
  const thief = await take(backend, steal(wanted));
  await backend.release(thief, call);
  expect(await backend.inspect('a', call)).toEqual({ resource: 'a', holders: [], waiters: [] });
  await backend.abandon(wanted, call);
  place.granted.catch(() => undefined);
});

test('many are taken all or none, in order past nobody, and give the same again', async () => {
  const { backend, path } = open();
  const wanted = [request('a'), shared('b'), permit('c', 2, 2)];
  const held = await take(backend, permit('c', 2));
  expect(await backend.attemptMany(wanted, call)).toBeUndefined();
  expect(rowsIn(path)).toMatchObject({ holds: 1, waiters: 0 });
  const behind = permit('c', 2, 2);
  await backend.attempt(behind, true, call);
  await backend.release(held, call);
  // The line is live, though its head has not come for it yet.
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

test('many that contradict what lives are not taken', async () => {
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
