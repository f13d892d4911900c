import assert from 'node:assert/strict';
import { isLockError } from '../../errors.ts';
import type { ConformanceCase } from '../case.ts';
import { delegate } from '../delegate.ts';
import { machineNow } from '../history.ts';
import { leaseTenure, needs, network, processes } from '../needs.ts';
import { grab, openCall } from '../raw.ts';
import { SafetyViolation } from '../safety-violation.ts';
import type { Stage } from '../stage.ts';
import { startWaiting, type Waiter, watch } from '../waiter.ts';

const HOUR_MS = 3_600_000;

/** When a lease ends, by the store's clock and by its holder's. */
export const expiryCases: readonly ConformanceCase[] = [
  {
    id: 'expiry/abandoned-lease-ends-in-time',
    clause: '§1.6',
    title: 'a lease that nobody renews ends not before its ttl, and soon after it',
    ...needs(leaseTenure),
    async run(stage) {
      const name = stage.name();
      const { slackMs, idleGapMs } = stage.timing;
      const ttlMs = Math.ceil(stage.livingTtlMs * 1.5);
      const { locks } = await stage.client({ waitMs: 30_000 });
      const backend = await stage.backend();
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
    async run(stage) {
      const name = stage.name();
      const { slackMs, idleGapMs } = stage.timing;
      const ttlMs = stage.livingTtlMs;
      const child = await stage.child();
      const { locks } = await stage.client({ waitMs: 30_000 });
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
      'clients whose wall clocks are an hour ahead or behind end no hold of others, and theirs last as long as any',
    ...needs(network, leaseTenure),
    async run(stage) {
      const { slackMs, idleGapMs } = stage.timing;
      const { locks } = await stage.client({ waitMs: 30_000 });
      const skewed = await Promise.all([stage.child(HOUR_MS), stage.child(-HOUR_MS)]);
      await Promise.all(
        skewed.map(async (child) => {
          const [ours, theirs, dead] = [stage.name(), stage.name(), stage.name()];
          const lease = await locks.lock(ours).acquire({ ttlMs: 60_000 });
          if ((await child.tryAcquire(ours)) !== undefined && lease.validForMs > 0)
            throw new SafetyViolation('a client with another wall clock entered beside a holder');
          const { id } = await child.acquire(theirs, { ttlMs: 60_000 });
          const taken = await locks.lock(theirs).tryAcquire();
          if (taken !== undefined && (await child.read(id)).validForMs > 0)
            throw new SafetyViolation('somebody entered beside a holder with another wall clock');
          const ttlMs = stage.livingTtlMs;
          await child.acquire(dead, { ttlMs });
          const next = locks.lock(dead).acquire();
          const waits = watch(next);
          await child.kill();
          await stage.until('its hold ended', () => waits.settled, ttlMs + idleGapMs + 3 * slackMs);
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
      'a holder believes in less time than the store has left, by 1 % of the ttl, after a grant and after a renewal',
    ...needs(leaseTenure),
    async run(stage) {
      const name = stage.name();
      const { backend, locks } = await stage.client();
      const lease = await locks.lock(name).acquire({ ttlMs: 20_000 });
      const check = async (ttlMs: number): Promise<void> => {
        const { holders } = await backend.inspect(name, openCall);
        // Read after the store was asked: by then both have less, the holder certainly.
        const believes = lease.validForMs;
        // Where the store does not tell it, another shows below that the holder ends first, if not by how much.
        const left = holders[0]?.expiresInMs ?? Number.POSITIVE_INFINITY;
        assert.ok(believes > 0 && believes <= ttlMs * 0.99, `it believes in ${believes} of ${ttlMs} ms`);
        assert.ok(believes <= left - ttlMs * 0.01, `it believes in ${believes} ms, the store has ${left} ms`);
      };
      await check(20_000);
      await lease.renew();
      await check(20_000);
      await lease.renew(60_000);
      await check(60_000);
      await lease.release();
      await Promise.all([false, true].map((renewed) => endsFirst(stage, renewed)));
    },
  },
  {
    id: 'expiry/told-before-the-next-holds',
    clause: '§8.2',
    title: 'the signal of a lease that runs out aborts, with its reason, before the next one holds',
    ...needs(leaseTenure),
    async run(stage) {
      const name = stage.name();
      const [first, second] = [await stage.client(), await stage.client({ waitMs: 30_000 })];
      const lease = await first.locks.lock(name).acquire({ ttlMs: stage.livingTtlMs, renewal: 'manual' });
      const { signal } = lease;
      let abortedAt = Number.POSITIVE_INFINITY;
      signal.addEventListener('abort', () => (abortedAt = machineNow()), { once: true });
      const next = await second.locks.lock(name).acquire();
      const enteredAt = machineNow();
      assert.ok(abortedAt <= enteredAt, 'the next one holds, and the signal has not aborted');
      assert.equal(signal.reason.code, 'LOCK_LOST');
      assert.equal(signal.reason.reason, 'expired');
      assert.equal(signal.reason.resource, name);
      assert.throws(() => lease.assertValid(), { code: 'LOCK_LOST' });
      await next.release();
    },
  },
  {
    id: 'expiry/slow-reply-costs-validity',
    clause: '§1.2',
    title: 'a lease counts from before its request was sent: a slow reply leaves that much less',
    ...needs(leaseTenure),
    async run(stage) {
      const ttlMs = 10_000;
      const delayMs = stage.timing.ttlMs;
      const { locks } = await stage.client({
        ttlMs,
        wrap: (backend) =>
          delegate(backend, {
            async attempt(...args) {
              const attempt = await backend.attempt(...args);
              await stage.sleep(delayMs);
              return attempt;
            },
            async renew(...args) {
              const standings = await backend.renew(...args);
              await stage.sleep(delayMs);
              return standings;
            },
          }),
      });
      const most = ttlMs * 0.99 - (delayMs - 2);
      const lease = await locks.lock(stage.name()).acquire();
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
    },
  },
  {
    id: 'expiry/late-grant-is-never-handed-out',
    clause: '§1.4',
    title: 'a grant whose reply comes after its ttl is given back and tried again',
    ...needs(leaseTenure),
    async run(stage) {
      const name = stage.name();
      const { ttlMs } = stage.timing;
      const granted: string[] = [];
      const abandoned: string[] = [];
      const { locks } = await stage.client({
        ttlMs,
        waitMs: 30_000,
        wrap: (backend) =>
          delegate(backend, {
            async attempt(request, enqueue, call) {
              const attempt = await backend.attempt(request, enqueue, call);
              if (granted.length === 0) await stage.sleep(ttlMs + 5);
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
      assert.ok(abandoned.includes(granted[0] as string), 'the late grant was not given back');
      await lease.release().catch(() => {});
    },
  },
  {
    id: 'expiry/short-grant-is-given-back',
    clause: '§1.4',
    title: 'a grant with minRemainingMs or less left is given back, and what is handed out has more',
    ...needs(leaseTenure),
    async run(stage) {
      const name = stage.name();
      let first: string | undefined;
      const { locks } = await stage.client({
        ttlMs: 60_000,
        wrap: (backend) =>
          delegate(backend, {
            async attempt(request, enqueue, call) {
              const attempt = await backend.attempt(request, enqueue, call);
              if (attempt.status !== 'granted' || first !== undefined) return attempt;
              first = request.acquisitionId;
              return { status: 'granted', grant: { ...attempt.grant, validForMs: 5_000 } };
            },
          }),
      });
      // Granted for a minute by the store: the second attempt gets in only if the first was given back.
      const lease = await locks.lock(name).acquire({ minRemainingMs: 10_000 });
      assert.notEqual(lease.acquisitionId, first);
      assert.ok(lease.validForMs > 10_000);
      lease.assertValid(10_000);
      assert.throws(() => lease.assertValid(60_000), { code: 'LOCK_LOST' });
      await lease.release();
    },
  },
  {
    id: 'expiry/short-hand-over-is-renewed-first',
    clause: '§1.4',
    title:
      'a hand-over with minRemainingMs or less left is renewed before it is handed out, and keeps its turn',
    ...needs(leaseTenure),
    async run(stage) {
      const name = stage.name();
      const { slackMs } = stage.timing;
      const options = { ttlMs: 60_000, minRemainingMs: 10_000, waitMs: 20 * slackMs };
      const { backend, locks } = await stage.client();
      const holder = await locks.lock(name).acquire();
      const waiters = [await startWaiting(stage, name, options), await startWaiting(stage, name, options)];
      const inOrder = backend.capabilities.order === 'fifo';
      const turns: number[] = [];
      const leave = async (waiter: Waiter, index: number): Promise<void> => {
        const lease = await waiter.lease;
        assert.ok(lease.validForMs > 10_000, `waiter ${index} has ${lease.validForMs} ms left`);
        if (inOrder) assert.equal(waiter.traffic.of('abandon'), 0, `waiter ${index} gave a hand-over back`);
        turns.push(index);
        await lease.release();
      };
      await holder.release();
      await Promise.all(waiters.map(leave));
      if (inOrder) assert.deepEqual(turns, [0, 1]);
    },
  },
];

/** Nobody else gets in while the holder believes in its lease, which is not renewed or, by another ttl, once. */
async function endsFirst(stage: Stage, renewed: boolean): Promise<void> {
  const ttlMs = 2 * stage.timing.ttlMs;
  const { locks } = await stage.client({ ttlMs, renewal: 'manual' });
  const other = await stage.client({ waitMs: 30_000 });
  for (;;) {
    const name = stage.name();
    const lease = await locks.lock(name).acquire();
    if (renewed) await lease.renew(ttlMs + stage.timing.ttlMs).catch(ignoringLoss);
    const readAt = performance.now();
    const believes = lease.validForMs;
    // A pause of this process outlasted it.
    if (believes === 0) continue;
    const next = await other.locks.lock(name).acquire();
    const earlyMs = readAt + believes - performance.now();
    if (earlyMs > 0) throw new SafetyViolation(`another entered ${earlyMs} ms before the holder's end`);
    await next.release();
    return;
  }
}

function ignoringLoss(error: unknown): void {
  if (!isLockError(error, 'LOCK_LOST')) throw error;
}
