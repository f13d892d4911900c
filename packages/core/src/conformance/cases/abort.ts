import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { inspect } from 'node:util';
import type { LockBackend } from '../../backend/types.ts';
import type { LockManager } from '../../create-locks.ts';
import type { Lease } from '../../lease.ts';
import { aroundCalls, type Sent, Traffic } from '../around-calls.ts';
import type { ConformanceCase } from '../case.ts';
import { delegate } from '../delegate.ts';
import type { Stage } from '../stage.ts';
import { startWaiting, watch } from '../waiter.ts';

/** More than there are between the answer of a store and the end of an acquire. */
const MOST_TURNS = 24;

/** Soon nobody holds and nobody waits, and the lock can be had: what is given back may be on its way to the store. */
async function nothingIsLeft(stage: Stage, locks: LockManager, name: string): Promise<void> {
  await stage.until('an aborted acquire is in nobody’s way', async () => {
    const { holders, waiters } = await locks.inspect(name);
    if (holders.length + waiters.length > 0) return false;
    const free = await locks.lock(name).tryAcquire();
    await free?.release();
    return free !== undefined;
  });
}

export const abortCases: readonly ConformanceCase[] = [
  {
    id: 'abort/before-the-call',
    clause: '§7.8',
    title: 'a signal that aborted before the call rejects with its reason, and nothing is sent',
    async run(stage) {
      const traffic = new Traffic();
      const { locks } = await stage.client({ wrap: traffic.wrap });
      const reason = { the: 'very reason' };
      const signal = AbortSignal.abort(reason);
      const lock = locks.lock(stage.name());
      const isReason = (error: unknown): boolean => error === reason;
      await assert.rejects(lock.acquire({ signal }), isReason);
      await assert.rejects(lock.tryAcquire({ signal }), isReason);
      await assert.rejects(
        lock.run(() => assert.fail('it worked'), { signal }),
        isReason,
      );
      assert.equal(traffic.total, 0);
    },
  },
  {
    id: 'abort/at-every-point',
    clause: '§7.8',
    title: 'an abort before or after any call of a waiting acquire leaves nothing: no holder, no waiter',
    async run(stage) {
      const points = await acquireWithAbortAt(stage, undefined);
      assert.ok(points.length >= 2, `the scenario made only the calls ${points.join(', ')}`);
      const targets = points.flatMap((sent, index) => [
        { index, when: 'before', sent } as const,
        { index, when: 'after', sent } as const,
      ]);
      await Promise.all(targets.map((target) => acquireWithAbortAt(stage, target)));
    },
  },
  {
    id: 'abort/while-waiting',
    clause: '§7.8',
    title: 'an abort ends the wait at once with the reason, and those behind move up',
    async run(stage) {
      const name = stage.name();
      const holder = await (await stage.client()).locks.lock(name).acquire();
      const controller = new AbortController();
      const waitMs = 20 * stage.timing.slackMs;
      const aborted = await startWaiting(stage, name, { signal: controller.signal, waitMs });
      const behind = await startWaiting(stage, name, { waitMs });
      await stage.sleep(stage.timing.slackMs / 4);
      const reason = new Error('enough');
      const elapsed = stage.stopwatch();
      controller.abort(reason);
      await assert.rejects(aborted.lease, (error) => error === reason);
      const tookMs = elapsed();
      assert.ok(tookMs < 3 * stage.timing.slackMs, `it rejected ${tookMs} ms after the abort`);
      await stage.until('the abandon is answered', () => aborted.traffic.answersTo('abandon') > 0);
      await holder.release();
      await stage.until(
        'the next waiter is granted',
        () => behind.settled() !== undefined,
        stage.timing.slackMs,
      );
      await (await behind.lease).release();
      await nothingIsLeft(stage, behind.locks, name);
    },
  },
  {
    id: 'abort/at-the-hand-off',
    clause: '§7.2',
    title: 'a waiter that aborts when it is handed the lock either has it or passes it on, every time',
    async run(stage) {
      const { slackMs } = stage.timing;
      for (let round = 0; round < 8; round += 1) {
        const name = stage.name();
        const holder = await (await stage.client()).locks.lock(name).acquire();
        const controller = new AbortController();
        const first = await startWaiting(stage, name, { signal: controller.signal, waitMs: 20 * slackMs });
        const second = await startWaiting(stage, name, { waitMs: 20 * slackMs });
        // Around the moment of the hand-off: turns of the event loop, from before the release to after its reply.
        const turns = stage.random.between(0, 6);
        const released = turns === 0 ? stage.sleep(0).then(() => holder.release()) : holder.release();
        for (let turn = 1; turn < turns; turn += 1) await new Promise(setImmediate);
        controller.abort(new Error('enough'));
        await released;
        const lease = await first.lease.catch(() => undefined);
        if (lease !== undefined) {
          lease.assertValid();
          await lease.release();
        }
        await stage.until(
          `round ${round}: the next waiter is granted (seed ${stage.seed})`,
          () => second.settled() !== undefined,
          slackMs,
        );
        await (await second.lease).release();
        await nothingIsLeft(stage, second.locks, name);
      }
    },
  },
  {
    id: 'abort/of-a-pushed-grant',
    clause: '§2.3',
    title: 'a grant that arrives in the moment of the abort is given back',
    async run(stage) {
      const name = stage.name();
      const controller = new AbortController();
      const reason = new Error('enough');
      const { locks } = await stage.client({
        // The grant is on its way to the caller; the abort comes in the same turn.
        wrap: (backend) =>
          delegate(backend, {
            async attempt(...args) {
              const attempt = await backend.attempt(...args);
              if (attempt.status === 'granted') queueMicrotask(() => controller.abort(reason));
              return attempt;
            },
          }),
      });
      const outcome = await locks
        .lock(name)
        .acquire({ signal: controller.signal })
        .catch((error: unknown) => error);
      const { locks: others } = await stage.client();
      if (outcome === reason) return await nothingIsLeft(stage, others, name);
      (outcome as Lease).assertValid();
      await (outcome as Lease).release();
      await nothingIsLeft(stage, others, name);
    },
  },
  {
    id: 'abort/after-the-grant',
    clause: '§7.8',
    title: 'an abort after the grant does nothing to the lease',
    async run(stage) {
      const controller = new AbortController();
      const { locks } = await stage.client();
      const lock = locks.lock(stage.name());
      const lease = await lock.acquire({ signal: controller.signal });
      controller.abort(new Error('too late'));
      await stage.sleep(stage.timing.slackMs / 8);
      lease.assertValid();
      assert.equal(lease.signal.aborted, false);
      assert.equal((await lock.inspect()).holders[0]?.acquisitionId, lease.acquisitionId);
      await lease.release();
    },
  },
  {
    id: 'abort/listens-only-while-it-waits',
    clause: '§9.1',
    title: 'a long-lived signal has no listener left after an acquire, whichever way it ended',
    async run(stage) {
      const name = stage.name();
      const { signal } = new AbortController();
      const { locks } = await stage.client();
      const listeners = (): number => getEventListeners(signal, 'abort').length;
      const lock = locks.lock(name);
      const holder = await lock.acquire({ signal });
      assert.equal(listeners(), 0, 'after a grant');
      assert.equal(await lock.tryAcquire({ signal }), undefined);
      assert.equal(listeners(), 0, 'after a contended attempt');
      await assert.rejects(lock.acquire({ signal, waitMs: stage.busyMs }), { code: 'LOCK_TIMEOUT' });
      assert.equal(listeners(), 0, 'after a timeout');
      const child = await lock.acquire({ within: holder });
      await assert.rejects(lock.acquire({ within: holder, signal, waitMs: 20 }), { code: 'LOCK_TIMEOUT' });
      assert.equal(listeners(), 0, 'after a local wait');
      await child.release();
      const waiting = lock.acquire({ signal, waitMs: 20 * stage.timing.slackMs });
      watch(waiting);
      await stage.until('it listens while it waits', () => listeners() > 0);
      await holder.release();
      await (await waiting).release();
      assert.equal(listeners(), 0, 'after a wait');
    },
  },
  {
    id: 'abort/before-it-settles',
    clause: '§2.3',
    title: 'who aborts before the acquire is settled does not hold, however near the grant is',
    async run(stage) {
      const traffic = new Traffic();
      const { locks } = await stage.client({ wrap: traffic.wrap, waitMs: 20 * stage.timing.slackMs });
      // From the answer to the release on: one microtask later each time, until the waiter is settled by then.
      for (let turns = 0, settled = false; turns < MOST_TURNS && !settled; turns += 1) {
        const name = stage.name();
        const holder = await locks.lock(name).acquire();
        const controller = new AbortController();
        const before = traffic.answersTo('attempt');
        const acquiring = locks.lock(name).acquire({ signal: controller.signal });
        watch(acquiring);
        await stage.until('it waits', () => traffic.answersTo('attempt') > before);
        await holder.release();
        for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
        settled = !inspect(acquiring).includes('<pending>');
        controller.abort(new Error('enough'));
        const lease = await acquiring.catch(() => undefined);
        if (!settled) assert.equal(lease, undefined, `aborted ${turns} turns after the release, it holds`);
        await lease?.release();
        await nothingIsLeft(stage, locks, name);
      }
    },
  },
];

interface Target {
  readonly index: number;
  readonly when: 'before' | 'after';
  readonly sent: Sent;
}

/** A held lock, an acquire that waits for it, and its release; aborts at the call that `target` says. Gives the calls. */
async function acquireWithAbortAt(stage: Stage, target: Target | undefined): Promise<Sent[]> {
  const name = stage.name();
  const { slackMs } = stage.timing;
  const controller = new AbortController();
  const reason = new Error('enough');
  const calls: Sent[] = [];
  const wrap = (backend: LockBackend): LockBackend =>
    aroundCalls(backend, async (sent, send) => {
      // Only the calls of the acquire: after it an abort means nothing.
      if (sent !== 'attempt' && sent !== 'awaitTurn') return await send();
      const index = calls.push(sent) - 1;
      if (target?.index === index && target.when === 'before') controller.abort(reason);
      const answer = await send();
      if (target?.index === index && target.when === 'after') controller.abort(reason);
      return answer;
    });
  const { locks: others } = await stage.client();
  const holder = await others.lock(name).acquire();
  const { locks } = await stage.client({ wrap });
  const waiting = locks.lock(name).acquire({ signal: controller.signal, waitMs: 20 * slackMs });
  const waits = watch(waiting);
  await stage.until(
    'it waits, or was aborted',
    () => waits.settled || calls.includes('awaitTurn') || calls.length > 1,
  );
  await holder.release();
  await stage.until('it is granted, or was aborted', () => waits.settled, 5 * slackMs);
  const what =
    target === undefined ? 'no abort' : `abort ${target.when} call ${target.index}, ${target.sent}`;
  const outcome = await waiting.catch((error: unknown) => error);
  if (controller.signal.aborted) assert.equal(outcome, reason, what);
  else await (outcome as Lease).release();
  await nothingIsLeft(stage, others, name);
  return calls;
}
