import { expect, test } from 'vitest';
import type { Locks } from '../../src/create-locks.ts';
import { locksOn, pass, rejectionOf, settled, useFakeClock } from '../fixture.ts';
import { answerLater, scriptedBackend } from '../scripted-backend.ts';

const reason = new Error('the user went away');

test('the wait for a turn obeys waitMs', async () => {
  useFakeClock();
  const lock = locksOn(scriptedBackend()).lock('a');
  const root = await lock.acquire();
  const first = await lock.acquire({ within: root });
  const second = rejectionOf(lock.acquire({ within: root, waitMs: 500 }));
  await pass(499);
  expect(root.holdCount).toBe(2);
  await pass(1);
  expect(await second).toBe('LOCK_TIMEOUT');
  const left = first.release();
  // It left the queue: nobody gets the turn, not even for a moment.
  expect(root.holdCount).toBe(1);
  await left;
  expect(await lock.tryAcquire({ within: root })).toBeDefined();
});

test('the wait for a turn obeys the signal, and the next in the queue does not wait for it', async () => {
  const lock = locksOn(scriptedBackend()).lock('a');
  const root = await lock.acquire();
  const first = await lock.acquire({ within: root });
  const controller = new AbortController();
  const second = lock.acquire({ within: root, signal: controller.signal }).catch((error: unknown) => error);
  const third = lock.acquire({ within: root });
  await settled();
  controller.abort(reason);
  expect(await second).toBe(reason);
  await first.release();
  expect((await third).holdCount).toBe(2);
});

test.each(['before', 'after', 'as it is taken'])(
  'a turn that is given in the moment of the abort (%s) goes to the next',
  async (when) => {
    const backend = scriptedBackend();
    const lock = locksOn(backend).lock('a');
    const root = await lock.acquire();
    const first = await lock.acquire({ within: root });
    const controller = new AbortController();
    const second = lock.acquire({ within: root, signal: controller.signal }).catch((error: unknown) => error);
    const third = lock.acquire({ within: root });
    await settled();
    if (when === 'after') controller.abort(reason);
    const left = first.release();
    if (when === 'before') controller.abort(reason);
    // After core has been given the turn, and before it goes on with it.
    if (when === 'as it is taken') queueMicrotask(() => controller.abort(reason));
    await left;
    expect(await second).toBe(reason);
    const entered = await third;
    await entered.release();
    await root.release();
    expect(backend.of('release')).toHaveLength(1);
  },
);

test('a turn given in the moment of the abort and of the parent’s release still gives the lease back', async () => {
  const backend = scriptedBackend();
  const lock = locksOn(backend).lock('a');
  const root = await lock.acquire();
  const first = await lock.acquire({ within: root });
  const controller = new AbortController();
  const second = lock.acquire({ within: root, signal: controller.signal }).catch((error: unknown) => error);
  await settled();
  void first.release();
  controller.abort(reason);
  void root.release();
  expect(await second).toBe(reason);
  await settled();
  expect(backend.of('release')).toHaveLength(1);
});

test('close ends the wait for a turn', async () => {
  const locks = locksOn(scriptedBackend());
  const lock = locks.lock('a');
  const root = await lock.acquire();
  await lock.acquire({ within: root });
  const queued = rejectionOf(lock.acquire({ within: root }));
  await settled();
  await locks.close();
  expect(await queued).toBe('LOCK_CLOSED');
});

const interruptions: [string, (controller: AbortController, locks: Locks) => unknown, unknown][] = [
  ['whose signal aborts', (controller) => controller.abort(reason), reason],
  [
    'whose manager closes',
    (_controller, locks) => void locks.close(),
    expect.objectContaining({ code: 'LOCK_CLOSED' }),
  ],
];

test.each(interruptions)(
  'a caller %s while it becomes a stranger rejects, and sends nothing',
  async (_what, interrupt, expected) => {
    let unsent = 0;
    for (let turns = 0; turns < 12; turns += 1) {
      const backend = scriptedBackend();
      const locks = locksOn(backend);
      const lock = locks.lock('a', { reentrant: true });
      const controller = new AbortController();
      const { answer, give } = answerLater<void>();
      let first: Promise<unknown> = Promise.resolve();
      let queued: Promise<unknown> = Promise.resolve();
      const running = lock
        .run(async () => {
          first = lock.run(() => answer).catch(() => 'lost');
          queued = lock.run(() => 'ran', { signal: controller.signal }).catch((error: unknown) => error);
          await settled();
        })
        .catch(() => 'lost');
      await settled();
      // The work has settled here, and the scope closes in one of the turns that follow.
      for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
      const sentBefore = backend.of('attempt').length;
      interrupt(controller, locks);
      // What is under way by then is interrupted a turn later where the manager closes.
      await Promise.resolve();
      const sentAfter = backend.of('attempt').length;
      give();
      await Promise.all([running, first]);
      const outcome = await queued;
      if (sentAfter > 1) continue;
      unsent += sentBefore === 1 ? 1 : 0;
      expect(outcome).toEqual(expected);
      expect(backend.of('attempt')).toHaveLength(1);
    }
    expect(unsent).toBeGreaterThan(2);
  },
);
