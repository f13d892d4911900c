// One file: the cases of a lost reply, one for each call of the contract.
import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { AcquireRequest, Attempt, LockBackend } from '../../src/backend/types.ts';
import type { LockEvents } from '../../src/events.ts';
import type { ConformanceCase } from '../case.ts';
import { delegate, NoReply } from '../delegate.ts';
import { fifo, leaseTenure, needs } from '../needs.ts';
import { exclusiveRequest, grab, holdersOf, openCall } from '../raw.ts';
import type { Client, CaseContext } from '../case-context.ts';

/** How often core repeats a failed abandon, in milliseconds. */
const REPEATED_MS = 1_000;

/** A client whose first attempt runs and loses its reply. */
async function losingOneReply(context: CaseContext, asked: AcquireRequest[]): Promise<Client> {
  return context.client({
    ttlMs: 60_000,
    wrap: (backend) =>
      delegate(backend, {
        async attempt(request, enqueue, call) {
          asked.push(request);
          const attempt = await backend.attempt(request, enqueue, call);
          if (asked.length === 1) throw new NoReply('attempt');
          return attempt;
        },
      }),
  });
}

/** A client whose attempts reach the store only when `deliver` is called. */
async function delayed(
  context: CaseContext,
  ttlMs: number,
  answers: boolean,
): Promise<Client & { deliver(): Promise<Attempt> }> {
  let deliver: (() => Promise<Attempt>) | undefined;
  const client = await context.client({
    ttlMs,
    wrap: (backend: LockBackend) =>
      delegate(backend, {
        attempt: (request, enqueue) =>
          new Promise((resolve) => {
            deliver ??= async () => {
              const attempt = await backend.attempt(request, enqueue, openCall);
              if (answers) resolve(attempt);
              return attempt;
            };
          }),
      }),
  });
  return { ...client, deliver: () => (deliver ?? assert.fail('nothing was sent'))() };
}

/** A client whose attempt is granted and loses its reply. `isLost` says which abandons, counted from 1, do not reach the store. */
async function ambiguous(context: CaseContext, isLost: (sending: number) => boolean) {
  const abandons: AcquireRequest[] = [];
  const backend = await context.backend();
  const { locks } = await context.client({
    ttlMs: 60_000,
    wrap: (real) =>
      delegate(real, {
        async attempt(...args) {
          await real.attempt(...args);
          throw new NoReply('attempt');
        },
        async abandon(request, call) {
          abandons.push(request);
          if (isLost(abandons.length)) throw new NoReply('abandon');
          await real.abandon(request, call);
        },
      }),
  });
  return { name: context.name(), locks, backend, abandons };
}

/** Cases of replies that never come, and of requests that come too late (docs/spec.md §2). */
export const lostReplyCases: readonly ConformanceCase[] = [
  {
    id: 'idempotence/lost-reply-of-acquire',
    clause: '§2.1',
    title: 'an acquire whose reply was lost is sent again and holds once',
    async run(context) {
      const name = context.name();
      const asked: AcquireRequest[] = [];
      const { backend, locks } = await losingOneReply(context, asked);
      const lease = await locks.lock(name).acquire();
      // In a store without a queue an id stands for one attempt.
      const again = backend.capabilities.order !== 'none';
      if (again) assert.equal(asked.length, 2);
      assert.equal(asked[0]?.acquisitionId === asked[1]?.acquisitionId, again);
      assert.deepEqual(await holdersOf(backend, name), [lease.acquisitionId]);
      await lease.release();
      assert.deepEqual(await holdersOf(backend, name), []);
    },
  },
  {
    id: 'idempotence/lost-reply-leaves-no-hold',
    clause: '§2.2',
    title: 'a single attempt whose reply was lost rejects with LOCK_BACKEND and leaves no hold',
    async run(context) {
      const name = context.name();
      const asked: AcquireRequest[] = [];
      const { backend, locks } = await losingOneReply(context, asked);
      await assert.rejects(locks.lock(name).tryAcquire(), (error: Error & { code?: string }) => {
        assert.equal(error.code, 'LOCK_BACKEND');
        return error.cause instanceof NoReply;
      });
      assert.equal(asked.length, 1);
      await context.until('the resource is free', async () => (await holdersOf(backend, name)).length === 0);
    },
  },
  {
    id: 'idempotence/unanswered-abandon-is-sent-again',
    clause: '§2.6',
    title:
      'an abandon without an answer is sent again; one that fails is reported, and repeated until the store is back',
    async run(context) {
      const { slackMs } = context.timing;
      let isAway = true;
      const once = await ambiguous(context, (sending) => sending === 1);
      const later = await ambiguous(context, () => isAway);
      const reported: LockEvents['locks:abandon-failed'][] = [];
      const listen = (message: unknown): void => {
        const event = message as LockEvents['locks:abandon-failed'];
        if (event.name === later.name) reported.push(event);
      };
      subscribe('locks:abandon-failed', listen);
      try {
        for (const { name, locks } of [once, later])
          await assert.rejects(locks.lock(name).tryAcquire(), { code: 'LOCK_BACKEND' });
        await context.until(
          'it is free',
          async () => (await holdersOf(once.backend, once.name)).length === 0,
        );
        await context.until(
          'the failure is reported',
          () => reported.length > 0,
          context.releaseBudgetMs + 3 * slackMs,
        );
        assert.ok(later.abandons.length >= 2, 'it was sent once');
        assert.ok(reported[0]?.error instanceof Error);
        isAway = false;
        await context.until(
          'the store that is back gets the abandon',
          async () => (await holdersOf(later.backend, later.name)).length === 0,
          REPEATED_MS + slackMs,
        );
        assert.equal(reported.length, 1);
      } finally {
        unsubscribe('locks:abandon-failed', listen);
        await later.backend.abandon(later.abandons[0] as AcquireRequest, openCall);
      }
    },
  },
  {
    id: 'idempotence/late-grant-is-abandoned',
    clause: '§2.3',
    title: 'a grant that arrives after its caller gave up is abandoned at once',
    async run(context) {
      const name = context.name();
      const { backend, locks, deliver } = await delayed(context, 60_000, true);
      await assert.rejects(locks.lock(name).acquire({ waitMs: 20 }), { code: 'LOCK_BACKEND' });
      assert.equal((await deliver()).status, 'granted');
      await context.until('the resource is free', async () => (await holdersOf(backend, name)).length === 0);
    },
  },
  {
    id: 'idempotence/ghost-lives-one-ttl',
    clause: '§2.2',
    title: 'a request that reaches the store after its abandon holds for at most one ttl',
    ...needs(leaseTenure),
    async run(context) {
      const name = context.name();
      const { ttlMs, slackMs, idleGapMs } = context.timing;
      const { locks, deliver } = await delayed(context, ttlMs, false);
      const other = await context.client({ waitMs: 30_000 });
      await assert.rejects(locks.lock(name).acquire({ waitMs: 20 }), { code: 'LOCK_BACKEND' });
      assert.equal((await deliver()).status, 'granted');
      const deliveredAt = performance.now();
      const lease = await other.locks.lock(name).acquire();
      const tookMs = performance.now() - deliveredAt;
      assert.ok(
        tookMs <= ttlMs + 3 * slackMs + idleGapMs,
        `the ghost lived for ${tookMs} ms with a ttl of ${ttlMs}`,
      );
      await lease.release();
    },
  },
  {
    id: 'idempotence/queued-ghost-is-passed-over',
    clause: '§2.2',
    title: 'a request that is queued after its abandon delays others by no more than a ttl and the idle gap',
    ...needs(fifo, leaseTenure),
    async run(context) {
      const name = context.name();
      const { ttlMs, slackMs, idleGapMs } = context.timing;
      const held = await grab(await context.backend(), name, 60_000);
      const { backend, locks, deliver } = await delayed(context, ttlMs, false);
      await assert.rejects(locks.lock(name).acquire({ waitMs: 20 }), { code: 'LOCK_BACKEND' });
      assert.equal((await deliver()).status, 'contended');
      const other = await context.client({ waitMs: 30_000 });
      const waiting = other.locks.lock(name).acquire();
      await backend.release(held, openCall);
      const releasedAt = performance.now();
      const lease = await waiting;
      const tookMs = performance.now() - releasedAt;
      assert.ok(
        tookMs <= ttlMs + 3 * slackMs + idleGapMs,
        `the ghost delayed the next waiter by ${tookMs} ms with a ttl of ${ttlMs}`,
      );
      await lease.release();
    },
  },
  {
    id: 'idempotence/lost-reply-of-release',
    clause: '§2.4',
    title: 'a release whose reply was lost is sent again, and its answer "not held" then is no loss',
    async run(context) {
      const name = context.name();
      let sendings = 0;
      const { backend, locks } = await context.client({
        wrap: (real) =>
          delegate(real, {
            async release(grant, call) {
              sendings += 1;
              const answer = await real.release(grant, call);
              if (sendings === 1) throw new NoReply('release');
              return answer;
            },
          }),
      });
      const lease = await locks.lock(name).acquire();
      await lease.release();
      assert.equal(sendings, 2);
      assert.equal(lease.signal.aborted, false);
      assert.deepEqual(await holdersOf(backend, name), []);
    },
  },
  {
    id: 'idempotence/resent-release-is-no-loss',
    clause: '§2.4',
    title: 'a release that the client sent again after a reconnect ("unknown") is no loss',
    async run(context) {
      const name = context.name();
      const { locks } = await context.client({
        wrap: (real) =>
          delegate(real, {
            async release(grant, call) {
              await real.release(grant, call);
              return (await real.release(grant, call)) === 'released' ? 'released' : 'unknown';
            },
          }),
      });
      const lease = await locks.lock(name).acquire();
      await lease.release();
      assert.equal(lease.signal.aborted, false);
      assert.equal(await locks.lock(name).run(() => 'worked'), 'worked');
    },
  },
  {
    id: 'idempotence/release-without-an-answer-ends',
    clause: '§2.5',
    title: 'a release without an answer is sent again for a second at most, then rejects with LOCK_BACKEND',
    async run(context) {
      let sendings = 0;
      const { locks } = await context.client({
        ttlMs: 60_000,
        wrap: (real) =>
          delegate(real, {
            release() {
              sendings += 1;
              return sendings === 1 ? new Promise(() => {}) : Promise.reject(new NoReply('release'));
            },
          }),
      });
      const lease = await locks.lock(context.name()).acquire();
      const startedAt = performance.now();
      await assert.rejects(lease.release(), { code: 'LOCK_BACKEND' });
      const tookMs = performance.now() - startedAt;
      assert.ok(sendings >= 2, 'it was sent once');
      assert.ok(tookMs <= context.releaseBudgetMs + 3 * context.timing.slackMs, `it took ${tookMs} ms`);
    },
  },
  {
    id: 'idempotence/renewal-sent-twice',
    clause: '§1.5',
    title: 'a renewal that reaches the store twice has the effect of one',
    async run(context) {
      const name = context.name();
      const backend = await context.backend();
      const held = await grab(backend, name, 60_000);
      const item = { grant: held, ttlMs: 60_000 };
      const renewalStatuses = [
        ...(await backend.renew([item, item], openCall)),
        ...(await backend.renew([item], openCall)),
      ];
      assert.deepEqual(
        renewalStatuses.map(({ status }) => status),
        ['held', 'held', 'held'],
      );
      const attempt = await backend.attempt(exclusiveRequest(name, 60_000), false, openCall);
      assert.equal(attempt.status, 'contended');
      assert.equal(await backend.release(held, openCall), 'released');
      assert.deepEqual(await holdersOf(backend, name), []);
    },
  },
];
