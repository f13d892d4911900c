import { expect, test, vi } from 'vitest';
import type { Attempt } from '../../src/backend/types.ts';
import { LocalQueues } from '../../src/waiting/local-queues.ts';
import { locksOn, rejectionOf, settled } from '../fixture.ts';
import { capabilities, contended, granted, scriptedBackend } from '../scripted-backend.ts';

const unordered = { ...capabilities, order: 'none' } as const;
const tryLater: Attempt = { status: 'contended', retryAfterMs: 50 };

function storeOf(free: { yes: boolean }) {
  return scriptedBackend({
    capabilities: unordered,
    attempt: (request, _, call) => Promise.resolve(free.yes ? granted(request, call) : tryLater),
  });
}

test('without a queue in the store only the first waiter of a process asks it', async () => {
  const free = { yes: false };
  const backend = storeOf(free);
  const locks = locksOn(backend);
  const waiting = Array.from({ length: 100 }, () => locks.lock('a').acquire({ waitMs: 60_000 }));
  const elsewhere = locks.lock('b').acquire({ waitMs: 60_000 });
  await settled();
  const before = backend.of('attempt').length;
  expect(before).toBe(101);
  const from = performance.now();
  await vi.waitUntil(() => backend.of('attempt').length >= before + 8, { timeout: 20_000, interval: 5 });
  // Each of the two queues asks every 40 to 50 ms.
  const asked = backend.of('attempt').length - before;
  expect(asked).toBeLessThanOrEqual(2 * (1 + (performance.now() - from) / 40));
  free.yes = true;
  // The next one attempts again when the one before it has left.
  await Promise.all([...waiting, elsewhere]);
});

test('a waiter that gives up, first or not, makes way for the next', async () => {
  const free = { yes: false };
  const locks = locksOn(storeOf(free));
  const abort = new AbortController();
  const first = rejectionOf(locks.lock('a').acquire({ waitMs: 100 }));
  await settled();
  const second = locks.lock('a').acquire({ signal: abort.signal });
  const third = locks.lock('a').acquire({ waitMs: 10_000 });
  const gone = expect(second).rejects.toThrow('enough');
  await settled();
  abort.abort(new Error('enough'));
  await gone;
  expect(await first).toBe('LOCK_TIMEOUT');
  free.yes = true;
  await (await third).release();
});

test('without a queue in the store each attempt has a fresh id, and one that failed is abandoned', async () => {
  const answers: (() => Promise<Attempt>)[] = [
    () => Promise.resolve(contended),
    () => Promise.reject(new Error('no reply')),
  ];
  const backend = scriptedBackend({
    capabilities: unordered,
    attempt: (request, _, call) => answers.shift()?.() ?? Promise.resolve(granted(request, call)),
  });
  const lease = await locksOn(backend).lock('a').acquire();
  const ids = backend.of('attempt').map((sent) => sent.ids[0]);
  expect(new Set(ids).size).toBe(3);
  expect(backend.of('abandon').map((sent) => sent.ids[0])).toEqual([ids[1]]);
  expect(lease.acquisitionId).toBe(ids[2]);
});

test('nothing is kept of an empty queue', async () => {
  const lines = new LocalQueues();
  const [one, two, three] = [lines.join('a'), lines.join('a'), lines.join('a')];
  expect([one.isFirst, two.isFirst, three.isFirst]).toEqual([true, false, false]);
  two.leave();
  one.leave();
  await three.turn;
  three.leave();
  // Left twice: it removes nothing of a new queue.
  const next = lines.join('a');
  three.leave();
  expect(next.isFirst).toBe(true);
  expect(lines.join('a').isFirst).toBe(false);
});

test('an acquire that comes while others of its manager wait asks the store only when its turn has come', async () => {
  let held = true;
  const asked: string[] = [];
  const backend = scriptedBackend({
    capabilities: unordered,
    attempt(request, _, call) {
      asked.push(request.label ?? '');
      return Promise.resolve(held ? contended : granted(request, call));
    },
  });
  const lock = locksOn(backend).lock('a');
  const first = lock.acquire({ label: 'first' });
  await settled();
  const second = lock.acquire({ label: 'second', waitMs: 400 });
  await vi.waitUntil(() => asked.length >= 4, { timeout: 20_000, interval: 5 });
  expect(new Set(asked)).toEqual(new Set(['first']));
  const rejected = expect(second).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
  await rejected;
  expect(new Set(asked)).toEqual(new Set(['first']));
  held = false;
  await (await first).release();
});

test('a release lets the next of its own manager ask at once, fifteen times in a row', async () => {
  let holder: string | undefined;
  const backend = scriptedBackend({
    capabilities: unordered,
    attempt(request, _, call) {
      if (holder !== undefined && holder !== request.acquisitionId) return Promise.resolve(contended);
      holder = request.acquisitionId;
      return Promise.resolve(granted(request, call));
    },
    release() {
      holder = undefined;
      return Promise.resolve('released');
    },
  });
  const lock = locksOn(backend).lock('a');
  const entered: number[] = [];
  const startedAt = performance.now();
  const all = Array.from({ length: 20 }, () =>
    lock.run(async () => {
      entered.push(performance.now() - startedAt);
      await Promise.resolve();
    }),
  );
  await Promise.all(all);
  // One of sixteen waits for its poll, so that other processes come in as well.
  const pauses = entered.filter((at, index) => at - (entered[index - 1] ?? 0) > 20).length;
  expect(pauses).toBeGreaterThanOrEqual(1);
  expect(pauses).toBeLessThanOrEqual(3);
});
