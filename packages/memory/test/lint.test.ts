import { expect, onTestFinished, test } from 'vitest';
import { createLocks, type Lock } from '@locks/core';
import { lintLocks } from '@locks/core/lint';
import { memoryBackend } from '../src/index.ts';

test('readers, permits and the members of a set have an order as others have', async () => {
  const found: string[][] = [];
  onTestFinished(
    lintLocks({
      onContradiction: ({ orders }) => found.push(orders.map(({ held, asked }) => `${held} ${asked}`)),
    }),
  );
  const locks = createLocks(memoryBackend());
  const nest = (first: Lock, second: Lock): Promise<void> => first.run(() => second.run(() => {}));
  const slots = locks.semaphore('slots', 2) as unknown as Lock;
  const { read, write } = locks.readWriteLock('w');
  await nest(read, slots);
  await nest(slots, write);
  const [a, b, c] = [locks.lock('a'), locks.lock('b'), locks.lock('c')];
  // The set takes both in one step, and one after the other while somebody holds the first.
  await locks.all([a, b]).run(() => c.run(() => {}));
  await nest(c, b);
  await locks.detached(() => nest(b, locks.lock('d')));
  const held = await a.acquire();
  const set = locks.all([b, a]).run(() => {});
  await expect.poll(async () => (await a.inspect()).waiters.length).toBe(1);
  await held.release();
  await set;
  await nest(b, a);
  expect(found).toEqual([
    ['slots w', 'w slots'],
    ['c b', 'b c'],
    ['b a', 'a b'],
  ]);
  await locks.close();
});
