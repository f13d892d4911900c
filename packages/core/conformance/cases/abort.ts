import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { inspect } from 'node:util';
import type { LockBackend } from '../../src/backend/types.ts';
import type { LockManager } from '../../src/create-locks.ts';
import type { Lease } from '../../src/lease.ts';
import { aroundCalls, type StoreCall, CallCounter } from '../around-calls.ts';
import type { ConformanceCase } from '../case.ts';
import { delegate } from '../delegate.ts';
import type { CaseContext } from '../case-context.ts';
import { granted, startWaiting, watch } from '../waiter.ts';

/** More microtasks than an acquire needs between the store's answer and its end. */
const MOST_TURNS = 24;

/** Waits until nobody holds or waits and the lock can be taken: a returned grant may still be on its way to the store. */
async function nothingIsLeft(context: CaseContext, locks: LockManager, name: string): Promise<void> {
  await context.until('an aborted acquire is in nobody’s way', async () => {
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
    async run(context) {
      const calls = new CallCounter();
      const { locks } = await context.client({ wrap: calls.wrap });
      const reason = { the: 'very reason' };
      const signal = AbortSignal.abort(reason);
      const lock = locks.lock(context.name());
      const isReason = (error: unknown): boolean => error === reason;
      await assert.rejects(lock.acquire({ signal }), isReason);
      await assert.rejects(lock.tryAcquire({ signal }), isReason);
      await assert.rejects(
        lock.run(() => assert.fail('it worked'), { signal }),
        isReason,
      );
      assert.equal(calls.total, 0);
    },
  },
  {
    id: 'abort/at-every-point',
    clause: '§7.8',
    title: 'an abort before or after any call of a waiting acquire leaves nothing: no holder, no waiter',
    async run(context) {
      const points = await acquireWithAbortAt(context, undefined);
      assert.ok(points.length >= 2, `the scenario made only the calls ${points.join(', ')}`);
      const targets = points.flatMap((sent, index) => [
        { index, when: 'before', sent } as const,
        { index, when: 'after', sent } as const,
      ]);
      await Promise.all(targets.map((target) => acquireWithAbortAt(context, target)));
    },
  },
  {
    id: 'abort/while-waiting',
    clause: '§7.8',
    title: 'an abort ends the wait at once with its reason, and the waiters behind move up',
    async run(context) {
      const name = context.name();
      const holder = await (await context.client()).locks.lock(name).acquire();
      const controller = new AbortController();
      const waitMs = 20 * context.timing.slackMs;
      const aborted = await startWaiting(context, name, { signal: controller.signal, waitMs });
      const behind = await startWaiting(context, name, { waitMs });
      await context.sleep(context.timing.slackMs / 4);
      const reason = new Error('enough');
      const elapsed = context.stopwatch();
      controller.abort(reason);
      await assert.rejects(aborted.lease, (error) => error === reason);
      const tookMs = elapsed();
      assert.ok(tookMs < 3 * context.timing.slackMs, `it rejected ${tookMs} ms after the abort`);
      await context.until('the abandon is answered', () => aborted.calls.answersTo('abandon') > 0);
      await holder.release();
      await (await granted(context, behind)).release();
      await nothingIsLeft(context, behind.locks, name);
    },
  },
  {
    id: 'abort/at-the-hand-off',
    clause: '§7.2',
    title: 'a waiter that aborts during the hand-off either holds the lock or passes it on, every time',
    async run(context) {
      const { slackMs } = context.timing;
      for (let round = 0; round < 8; round += 1) {
        const name = context.name();
        const holder = await (await context.client()).locks.lock(name).acquire();
        const controller = new AbortController();
        const first = await startWaiting(context, name, { signal: controller.signal, waitMs: 20 * slackMs });
        const second = await startWaiting(context, name, { waitMs: 20 * slackMs });
        // The abort comes around the hand-off: in one of the turns from before the release to after its reply.
        const turns = context.random.between(0, 6);
        const released = turns === 0 ? context.sleep(0).then(() => holder.release()) : holder.release();
        for (let turn = 1; turn < turns; turn += 1) await new Promise(setImmediate);
        controller.abort(new Error('enough'));
        await released;
        const lease = await first.lease.catch(() => undefined);
        if (lease !== undefined) {
          lease.assertValid();
          await lease.release();
        }
        await (await granted(context, second)).release();
        await nothingIsLeft(context, second.locks, name);
      }
    },
  },
  {
    id: 'abort/of-a-pushed-grant',
    clause: '§2.3',
    title: 'a grant that arrives in the same moment as the abort is returned',
    async run(context) {
      const name = context.name();
      const controller = new AbortController();
      const reason = new Error('enough');
      const { locks } = await context.client({
        // The abort comes in the iteration of the event loop in which the grant is on its way to the caller.
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
      const { locks: others } = await context.client();
      if (outcome === reason) return await nothingIsLeft(context, others, name);
      (outcome as Lease).assertValid();
      await (outcome as Lease).release();
      await nothingIsLeft(context, others, name);
    },
  },
  {
    id: 'abort/after-the-grant',
    clause: '§7.8',
    title: 'an abort after the grant does nothing to the lease',
    async run(context) {
      const controller = new AbortController();
      const { locks } = await context.client();
      const lock = locks.lock(context.name());
      const lease = await lock.acquire({ signal: controller.signal });
      controller.abort(new Error('too late'));
      await context.sleep(context.timing.slackMs / 8);
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
    async run(context) {
      const name = context.name();
      const { signal } = new AbortController();
      const { locks } = await context.client();
      const listeners = (): number => getEventListeners(signal, 'abort').length;
      const lock = locks.lock(name);
      const holder = await lock.acquire({ signal });
      assert.equal(listeners(), 0, 'after a grant');
      assert.equal(await lock.tryAcquire({ signal }), undefined);
      assert.equal(listeners(), 0, 'after a contended attempt');
      await assert.rejects(lock.acquire({ signal, waitMs: context.busyMs }), { code: 'LOCK_TIMEOUT' });
      assert.equal(listeners(), 0, 'after a timeout');
      const child = await lock.acquire({ within: holder });
      await assert.rejects(lock.acquire({ within: holder, signal, waitMs: 20 }), { code: 'LOCK_TIMEOUT' });
      assert.equal(listeners(), 0, 'after a local wait');
      await child.release();
      const waiting = lock.acquire({ signal, waitMs: 20 * context.timing.slackMs });
      watch(waiting);
      await context.until('it listens while it waits', () => listeners() > 0);
      await holder.release();
      await (await waiting).release();
      assert.equal(listeners(), 0, 'after a wait');
    },
  },
  {
    id: 'abort/before-it-settles',
    clause: '§2.3',
    title: 'an acquire that is aborted before its promise settles does not hold, however near the grant is',
    async run(context) {
      const calls = new CallCounter();
      const { locks } = await context.client({ wrap: calls.wrap, waitMs: 20 * context.timing.slackMs });
      // Each round aborts one microtask later after the answer to the release, until the acquire has settled by then.
      for (let turns = 0, settled = false; turns < MOST_TURNS && !settled; turns += 1) {
        const name = context.name();
        const holder = await locks.lock(name).acquire();
        const controller = new AbortController();
        const before = calls.answersTo('attempt');
        const acquiring = locks.lock(name).acquire({ signal: controller.signal });
        watch(acquiring);
        await context.until('it waits', () => calls.answersTo('attempt') > before);
        await holder.release();
        for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
        settled = !inspect(acquiring).includes('<pending>');
        controller.abort(new Error('enough'));
        const lease = await acquiring.catch(() => undefined);
        if (!settled) assert.equal(lease, undefined, `aborted ${turns} turns after the release, it holds`);
        await lease?.release();
        await nothingIsLeft(context, locks, name);
      }
    },
  },
];

interface Target {
  readonly index: number;
  readonly when: 'before' | 'after';
  readonly sent: StoreCall;
}

/** Waits for a held lock, and aborts the acquire at the call that `target` names. Returns the calls of the acquire. */
async function acquireWithAbortAt(context: CaseContext, target: Target | undefined): Promise<StoreCall[]> {
  const name = context.name();
  const { slackMs } = context.timing;
  const controller = new AbortController();
  const reason = new Error('enough');
  const calls: StoreCall[] = [];
  const wrap = (backend: LockBackend): LockBackend =>
    aroundCalls(backend, async (sent, send) => {
      // Only calls of the acquire count: an abort after it means nothing.
      if (sent !== 'attempt' && sent !== 'awaitTurn') return await send();
      const index = calls.push(sent) - 1;
      if (target?.index === index && target.when === 'before') controller.abort(reason);
      const answer = await send();
      if (target?.index === index && target.when === 'after') controller.abort(reason);
      return answer;
    });
  const { locks: others } = await context.client();
  const holder = await others.lock(name).acquire();
  const { locks } = await context.client({ wrap });
  const waiting = locks.lock(name).acquire({ signal: controller.signal, waitMs: 20 * slackMs });
  const waits = watch(waiting);
  await context.until(
    'it waits, or was aborted',
    () => waits.settled || calls.includes('awaitTurn') || calls.length > 1,
  );
  await holder.release();
  await context.until('it is granted, or was aborted', () => waits.settled, 5 * slackMs);
  const what =
    target === undefined ? 'no abort' : `abort ${target.when} call ${target.index}, ${target.sent}`;
  const outcome = await waiting.catch((error: unknown) => error);
  if (controller.signal.aborted) assert.equal(outcome, reason, what);
  else await (outcome as Lease).release();
  await nothingIsLeft(context, others, name);
  return calls;
}
