import assert from 'node:assert/strict';
import { isLockError } from '../../src/errors.ts';
import type { ConformanceCase } from '../case.ts';
import { delegate } from '../delegate.ts';
import { machineNow } from '../critical-section.ts';
import { leaseTenure, needs, network, processes } from '../needs.ts';
import { grab, openCall } from '../raw.ts';
import { SafetyViolation } from '../safety-violation.ts';
import type { CaseContext } from '../case-context.ts';
import { watch } from '../waiter.ts';

const HOUR_MS = 3_600_000;

/** Cases about when a lease ends, by the store's clock and by its holder's. */
export const expiryCases: readonly ConformanceCase[] = [
  {
    id: 'expiry/abandoned-lease-ends-in-time',
    clause: '§1.6',
    title: 'a lease that is not renewed ends not before its ttl, and soon after it',
    ...needs(leaseTenure),
    async run(context) {
      const name = context.name();
      const { slackMs, idleGapMs } = context.timing;
      const ttlMs = context.inSteps(context.livingTtlMs * 1.5);
      const { locks } = await context.client({ waitMs: 30_000 });
      const backend = await context.backend();
      const sentAt = performance.now();
      await grab(backend, name, ttlMs);
      const answeredAt = performance.now();
      const lease = await locks.lock(name).acquire();
      const acquiredAt = performance.now();
      assert.ok(
        acquiredAt >= sentAt + ttlMs * 0.99 - 2,
        `it ended after ${acquiredAt - sentAt} of ${ttlMs} ms`,
      );
      const late = acquiredAt - answeredAt - ttlMs;
      assert.ok(late <= 3 * slackMs + idleGapMs, `the next holder entered ${late} ms after the end`);
      await lease.release();
    },
  },
  {
    id: 'expiry/killed-holder-frees-in-time',
    clause: '§7.7',
    title: 'after kill -9 of the process that holds, the next one enters within the ttl and the idle gap',
    ...needs(processes, leaseTenure),
    async run(context) {
      const name = context.name();
      const { slackMs, idleGapMs } = context.timing;
      const ttlMs = context.livingTtlMs;
      const child = await context.child();
      const { locks } = await context.client({ waitMs: 30_000 });
      await child.acquire(name, { ttlMs });
      const waiting = locks.lock(name).acquire();
      await child.kill();
      const killedAt = performance.now();
      const lease = await waiting;
      const tookMs = performance.now() - killedAt;
      assert.ok(tookMs <= ttlMs + idleGapMs + 3 * slackMs, `it took ${tookMs} ms with a ttl of ${ttlMs}`);
      await lease.release();
    },
  },
  {
    id: 'expiry/wall-clocks-do-not-count',
    clause: '§1.6',
    title:
      'clients whose wall clocks are an hour ahead or behind end no hold of others, and their holds last as long as any',
    ...needs(network, leaseTenure),
    async run(context) {
      const { slackMs, idleGapMs } = context.timing;
      const { locks } = await context.client({ waitMs: 30_000 });
      const skewed = await Promise.all([context.child(HOUR_MS), context.child(-HOUR_MS)]);
      await Promise.all(
        skewed.map(async (child) => {
          const [ours, theirs, dead] = [context.name(), context.name(), context.name()];
          const lease = await locks.lock(ours).acquire({ ttlMs: 60_000 });
          if ((await child.tryAcquire(ours)) !== undefined && lease.validForMs > 0)
            throw new SafetyViolation('a client with another wall clock entered beside a holder');
          const { id } = await child.acquire(theirs, { ttlMs: 60_000 });
          const taken = await locks.lock(theirs).tryAcquire();
          if (taken !== undefined && (await child.read(id)).validForMs > 0)
            throw new SafetyViolation('somebody entered beside a holder with another wall clock');
          const ttlMs = context.livingTtlMs;
          await child.acquire(dead, { ttlMs });
          const next = locks.lock(dead).acquire();
          const waits = watch(next);
          await child.kill();
          await context.until(
            'the hold of the client with another wall clock ended',
            () => waits.settled,
            ttlMs + idleGapMs + 3 * slackMs,
          );
          await (await next).release();
          await lease.release();
        }),
      );
    },
  },
  {
    id: 'expiry/holder-ends-before-the-store',
    clause: '§1.2',
    title:
      'a holder counts on less time than the store has left, by 1 % of the ttl, after a grant and after a renewal',
    ...needs(leaseTenure),
    async run(context) {
      const name = context.name();
      const { backend, locks } = await context.client();
      const lease = await locks.lock(name).acquire({ ttlMs: 20_000 });
      const check = async (ttlMs: number): Promise<void> => {
        const { holders } = await backend.inspect(name, openCall);
        // The holder's time is read after the store's: it has become smaller meanwhile, which cannot hide an error.
        const believes = lease.validForMs;
        // Where the store does not show it, a second client shows below that the holder ends first, though not by how much.
        const left = holders[0]?.expiresInMs ?? Number.POSITIVE_INFINITY;
        assert.ok(
          believes > 0 && believes <= ttlMs * 0.99,
          `the holder counts on ${believes} of ${ttlMs} ms`,
        );
        assert.ok(
          believes <= left - ttlMs * 0.01,
          `The holder counts on ${believes} ms, and the store has ${left} ms left: countedFrom is too late,  ` +
            'validForMs too long, or the store was asked for less than the ttl.',
        );
      };
      await check(20_000);
      await lease.renew();
      await check(20_000);
      await lease.renew(60_000);
      await check(60_000);
      await lease.release();
      await Promise.all([false, true].map((renewed) => endsFirst(context, renewed)));
    },
  },
  {
    id: 'expiry/reported-before-the-next-holds',
    clause: '§8.2',
    title: 'the signal of a lease that runs out aborts, with its reason, before the next client holds',
    ...needs(leaseTenure),
    async run(context) {
      const name = context.name();
      const [first, second] = [await context.client(), await context.client({ waitMs: 30_000 })];
      const lease = await first.locks.lock(name).acquire({ ttlMs: context.livingTtlMs, renewal: 'manual' });
      const { signal } = lease;
      let abortedAt = Number.POSITIVE_INFINITY;
      signal.addEventListener('abort', () => (abortedAt = machineNow()), { once: true });
      const next = await second.locks.lock(name).acquire();
      const enteredAt = machineNow();
      assert.ok(abortedAt <= enteredAt, 'the next client holds, and the signal has not aborted');
      assert.equal(signal.reason.code, 'LOCK_LOST');
      assert.equal(signal.reason.reason, 'expired');
      assert.equal(signal.reason.lockName, name);
      assert.throws(() => lease.assertValid(), { code: 'LOCK_LOST' });
      await next.release();
    },
  },
  {
    id: 'expiry/slow-reply-costs-validity',
    clause: '§1.2',
    title:
      'a lease counts from before its request was sent: the time of a slow reply or hand-off is missing from it',
    ...needs(leaseTenure),
    async run(context) {
      const ttlMs = 10_000;
      const delayMs = context.timing.ttlMs;
      const { locks } = await context.client({
        ttlMs,
        wrap: (backend) =>
          delegate(backend, {
            async attempt(...args) {
              const attempt = await backend.attempt(...args);
              await context.sleep(delayMs);
              return attempt;
            },
            async renew(...args) {
              const renewalStatuses = await backend.renew(...args);
              await context.sleep(delayMs);
              return renewalStatuses;
            },
            ...(backend.awaitTurn && {
              async awaitTurn(...args) {
                const grant = await backend.awaitTurn?.(...args);
                await context.sleep(delayMs);
                return grant;
              },
            }),
          }),
      });
      const most = ttlMs * 0.99 - (delayMs - 2);
      const lease = await locks.lock(context.name()).acquire();
      assert.ok(
        lease.validForMs <= most,
        `${lease.validForMs} ms after a reply that took ${delayMs} ms of ${ttlMs}`,
      );
      await lease.renew();
      assert.ok(
        lease.validForMs <= most,
        `${lease.validForMs} ms after a renewal that took ${delayMs} ms of ${ttlMs}`,
      );
      await lease.release();
      const name = context.name();
      const held = await (await context.client()).locks.lock(name).acquire();
      const waiting = locks.lock(name).acquire({ waitMs: 30_000 });
      await context.sleep(delayMs * 2);
      await held.release();
      const next = await waiting;
      assert.ok(
        next.validForMs <= most,
        `${next.validForMs} ms after a hand-off that took ${delayMs} ms of ${ttlMs}`,
      );
      await next.release();
    },
  },
  {
    id: 'expiry/late-grant-is-never-handed-out',
    clause: '§1.4',
    title: 'a grant whose reply comes after its ttl is returned, and the attempt repeated',
    ...needs(leaseTenure),
    async run(context) {
      const name = context.name();
      const { ttlMs } = context.timing;
      const granted: string[] = [];
      const abandoned: string[] = [];
      const { locks } = await context.client({
        ttlMs,
        waitMs: 30_000,
        wrap: (backend) =>
          delegate(backend, {
            async attempt(request, enqueue, call) {
              const attempt = await backend.attempt(request, enqueue, call);
              if (granted.length === 0) await context.sleep(ttlMs + 5);
              if (attempt.status === 'granted') granted.push(request.acquisitionId);
              return attempt;
            },
            abandon(request, call) {
              abandoned.push(request.acquisitionId);
              return backend.abandon(request, call);
            },
          }),
      });
      const lease = await locks.lock(name).acquire({ ttlMs });
      assert.ok(granted.length >= 2, 'there was no second attempt');
      assert.notEqual(lease.acquisitionId, granted[0]);
      assert.ok(abandoned.includes(granted[0] as string), 'the late grant was not returned');
      await lease.release().catch(() => {});
    },
  },
];

/** Checks that nobody else is granted while a lease, renewed once or never, is valid for its holder. */
async function endsFirst(context: CaseContext, renewed: boolean): Promise<void> {
  const ttlMs = 2 * context.timing.ttlMs;
  const { locks } = await context.client({ ttlMs, renewal: 'manual' });
  const other = await context.client({ waitMs: 30_000 });
  for (;;) {
    const name = context.name();
    const lease = await locks.lock(name).acquire();
    if (renewed) await lease.renew(ttlMs + context.timing.ttlMs).catch(ignoringLoss);
    const readAt = performance.now();
    const believes = lease.validForMs;
    // A pause of this process outlasted the lease.
    if (believes === 0) continue;
    const next = await other.locks.lock(name).acquire();
    const earlyMs = readAt + believes - performance.now();
    if (earlyMs > 0) {
      throw new SafetyViolation(
        `Another entered ${Math.ceil(earlyMs)} ms before the holder's end: the store ended the hold early, or it reported  ` +
          'too long a time to the holder (countedFrom, validForMs).',
      );
    }
    await next.release();
    return;
  }
}

function ignoringLoss(error: unknown): void {
  if (!isLockError(error, 'LOCK_LOST')) throw error;
}
