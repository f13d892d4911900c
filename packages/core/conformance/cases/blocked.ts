import assert from 'node:assert/strict';
import type { CaseContext } from '../case-context.ts';
import type { ConformanceCase } from '../case.ts';
import type { Child } from '../child/child.ts';
import type { OpenOptions } from '../child/protocol.ts';
import { forceRelease, needs, processes, thread } from '../needs.ts';
import { succeedsOnce } from '../rounds.ts';
import { SafetyViolation } from '../safety-violation.ts';
import { granted, startWaiting, watch } from '../waiter.ts';

const MINUTE_MS = 60_000;

/** A process whose leases a thread renews while its event loop stands still. */
async function withThread(context: CaseContext, options: OpenOptions = {}): Promise<Child> {
  const child = await context.child();
  await child.close();
  await child.open({ maxBlockedMs: MINUTE_MS, ...options });
  // The first acquire waits for the start of the thread.
  await child.release((await child.acquire(context.name(), { waitMs: MINUTE_MS })).id);
  return child;
}

/** Cases of leases that a thread renews while the event loop of their holder stands still. */
export const blockedCases: readonly ConformanceCase[] = [
  {
    id: 'blocked/lease-is-kept',
    clause: '§20.3',
    title:
      'a lease that a thread renews is held at the first read after a block of two and a half ttl, and a waiter gets it after its release',
    ...needs(thread, processes),
    async run(context) {
      const ttlMs = context.livingTtlMs;
      const child = await withThread(context);
      await succeedsOnce(async () => {
        const name = context.name();
        const { id } = await child.acquire(name, { ttlMs });
        const waiter = await startWaiting(context, name, { waitMs: MINUTE_MS });
        const { assertion } = await child.readAfterBlock(id, 2.5 * ttlMs);
        const hasEntered = waiter.settled() !== undefined;
        if (hasEntered) await (await waiter.lease).release();
        if (hasEntered && assertion === undefined)
          throw new SafetyViolation('a lease was held after a block, and another client had got it');
        assert.equal(assertion, undefined, 'the lease did not outlive the block');
        await child.release(id);
        await (await granted(context, waiter, context.timing.idleGapMs + context.timing.slackMs)).release();
      });
    },
  },
  {
    id: 'blocked/ends-at-its-bound',
    clause: '§20.2',
    title:
      'a lease whose holder is blocked for longer than maxBlockedMs is free within a ttl after that, and the holder is told at the first read',
    ...needs(thread, processes),
    async run(context) {
      const { slackMs, idleGapMs } = context.timing;
      const ttlMs = context.inSteps(context.timing.ttlMs);
      const maxBlockedMs = 2 * ttlMs;
      const child = await withThread(context, { maxBlockedMs });
      const name = context.name();
      const { id } = await child.acquire(name, { ttlMs });
      const waiter = await startWaiting(context, name, { waitMs: MINUTE_MS });
      const limitMs = maxBlockedMs + ttlMs + context.stepMs + idleGapMs + slackMs;
      const reading = child.readAfterBlock(id, limitMs + slackMs);
      watch(reading);
      const lease = await granted(context, waiter, limitMs);
      const { assertion, aborted } = await reading;
      if (assertion === undefined)
        throw new SafetyViolation('a lease was held after a block, and another client had got it');
      assert.equal(assertion, 'LOCK_LOST');
      assert.ok(aborted, 'the signal has not aborted');
      await lease.release();
    },
  },
  {
    id: 'blocked/an-end-is-read-first',
    clause: '§20.3',
    title:
      'the end of a lease that was released by force during a block is seen by the first read after it, before the ttl is over',
    ...needs(thread, processes, forceRelease),
    async run(context) {
      const ttlMs = 2 * context.livingTtlMs;
      const child = await withThread(context);
      const { locks } = await context.client();
      await succeedsOnce(async () => {
        const name = context.name();
        const { id } = await child.acquire(name, { ttlMs });
        const reading = child.readAfterBlock(id, 0.8 * ttlMs);
        watch(reading);
        await context.sleep(context.timing.slackMs / 4);
        await locks.forceRelease(name);
        assert.equal((await reading).assertion, 'LOCK_LOST');
        assert.match((await reading).reason ?? '', /^(force-released|taken-over)$/);
      });
    },
  },
  {
    id: 'blocked/release-is-sent',
    clause: '§20.8',
    title: 'a lease that is released right before a block is free during the block',
    ...needs(thread, processes),
    async run(context) {
      const { slackMs, idleGapMs } = context.timing;
      const child = await withThread(context);
      await succeedsOnce(async () => {
        const name = context.name();
        const { id } = await child.acquire(name, { ttlMs: context.inSteps(MINUTE_MS) });
        const waiter = await startWaiting(context, name, { waitMs: MINUTE_MS });
        const limitMs = idleGapMs + slackMs;
        const releasing = child.releaseAndBlock(id, limitMs + slackMs, false);
        watch(releasing);
        const lease = await granted(context, waiter, limitMs);
        await releasing;
        await lease.release();
      });
    },
  },
  {
    id: 'blocked/loop-takes-over',
    clause: '§20.6',
    title: 'the event loop renews the lease of a thread that has ended',
    ...needs(thread, processes),
    async run(context) {
      const ttlMs = context.livingTtlMs;
      const { locks } = await context.client();
      const child = await withThread(context, { endsAtRenewal: true });
      const name = context.name();
      const { id } = await child.acquire(name, { ttlMs });
      await child.untilThreadStopped();
      await context.sleep(2.5 * ttlMs);
      const taken = await locks.lock(name).tryAcquire();
      const { assertion } = await child.read(id);
      if (taken !== undefined && assertion === undefined)
        throw new SafetyViolation('a lease was held, and another client had got it');
      assert.equal(assertion, undefined, 'the lease was lost with its thread');
      await child.release(id);
    },
  },
];
