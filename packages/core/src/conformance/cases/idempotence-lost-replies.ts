import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { AcquireRequest, Attempt, LockBackend } from '../../backend/types.ts';
import type { LockEvents } from '../../events.ts';
import type { ConformanceCase } from '../case.ts';
import { delegate, NoReply } from '../delegate.ts';
import { fifo, leaseTenure, needs } from '../needs.ts';
import { exclusiveRequest, grab, holdersOf, openCall } from '../raw.ts';
import type { Client, Stage } from '../stage.ts';

/** The first attempt of this client runs, and its reply is lost. */
async function losingOneReply(stage: Stage, asked: AcquireRequest[]): Promise<Client> {
  return stage.client({
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

/** The attempts of this client reach the store only when `deliver` is called. */
async function delayed(
  stage: Stage,
  ttlMs: number,
  answers: boolean,
): Promise<Client & { deliver(): Promise<Attempt> }> {
  let deliver: (() => Promise<Attempt>) | undefined;
  const client = await stage.client({
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

/** What this client attempts is granted and its reply lost; the first `unanswered` abandons do not reach the store. */
async function ambiguous(stage: Stage, unanswered: number) {
  const abandons: AcquireRequest[] = [];
  const backend = await stage.backend();
  const { locks } = await stage.client({
    ttlMs: 60_000,
    wrap: (real) =>
      delegate(real, {
        async attempt(...args) {
          await real.attempt(...args);
          throw new NoReply('attempt');
        },
        async abandon(request, call) {
          abandons.push(request);
          if (abandons.length <= unanswered) throw new NoReply('abandon');
          await real.abandon(request, call);
        },
      }),
  });
  return { name: stage.name(), locks, backend, abandons };
}

/** Replies that never come, and requests that come too late (docs/spec.md §2). */
export const lostReplyCases: readonly ConformanceCase[] = [
  {
    id: 'idempotence/lost-reply-of-acquire',
    clause: '§2.1',
    title: 'an acquire whose reply was lost is sent again and holds once',
    async run(stage) {
      const name = stage.name();
      const asked: AcquireRequest[] = [];
      const { backend, locks } = await losingOneReply(stage, asked);
      const lease = await locks.lock(name).acquire();
      // Where nobody queues an id stands for one attempt.
      const again = backend.capabilities.order === 'fifo';
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
    async run(stage) {
      const name = stage.name();
      const asked: AcquireRequest[] = [];
      const { backend, locks } = await losingOneReply(stage, asked);
      await assert.rejects(locks.lock(name).tryAcquire(), (error: Error & { code?: string }) => {
        assert.equal(error.code, 'LOCK_BACKEND');
        return error.cause instanceof NoReply;
      });
      assert.equal(asked.length, 1);
      await stage.until('the resource is free', async () => (await holdersOf(backend, name)).length === 0);
    },
  },
  {
    id: 'idempotence/unanswered-abandon-is-sent-again',
    clause: '§2.6',
    title: 'an abandon that gets no answer is sent again; one that never gets any is told',
    async run(stage) {
      const [once, never] = [await ambiguous(stage, 1), await ambiguous(stage, Number.POSITIVE_INFINITY)];
      const told: LockEvents['locks:abandon-failed'][] = [];
      const listen = (message: unknown): void => {
        const event = message as LockEvents['locks:abandon-failed'];
        if (event.resource === never.name) told.push(event);
      };
      subscribe('locks:abandon-failed', listen);
      try {
        for (const { name, locks } of [once, never])
          await assert.rejects(locks.lock(name).tryAcquire(), { code: 'LOCK_BACKEND' });
        await stage.until('it is free', async () => (await holdersOf(once.backend, once.name)).length === 0);
        await stage.until('the failure is told', () => told.length > 0, 1_000 + 3 * stage.timing.slackMs);
        assert.ok(never.abandons.length >= 2, 'it was sent once');
        assert.ok(told[0]?.error instanceof Error);
        assert.equal(told.length, 1);
      } finally {
        unsubscribe('locks:abandon-failed', listen);
        await never.backend.abandon(never.abandons[0] as AcquireRequest, openCall);
      }
    },
  },
  {
    id: 'idempotence/late-grant-is-abandoned',
    clause: '§2.3',
    title: 'a grant that reaches a caller who gave up is abandoned at once',
    async run(stage) {
      const name = stage.name();
      const { backend, locks, deliver } = await delayed(stage, 60_000, true);
      await assert.rejects(locks.lock(name).acquire({ waitMs: 20 }), { code: 'LOCK_BACKEND' });
      assert.equal((await deliver()).status, 'granted');
      await stage.until('the resource is free', async () => (await holdersOf(backend, name)).length === 0);
    },
  },
  {
    id: 'idempotence/ghost-lives-one-ttl',
    clause: '§2.2',
    title: 'a request that reaches the store after its abandon holds for at most one ttl',
    ...needs(leaseTenure),
    async run(stage) {
      const name = stage.name();
      const { ttlMs, slackMs, idleGapMs } = stage.timing;
      const { locks, deliver } = await delayed(stage, ttlMs, false);
      const other = await stage.client({ waitMs: 30_000 });
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
    title:
      'a request that reaches the queue after its abandon keeps nobody out for longer than a ttl and the idle gap',
    ...needs(fifo, leaseTenure),
    async run(stage) {
      const name = stage.name();
      const { ttlMs, slackMs, idleGapMs } = stage.timing;
      const held = await grab(await stage.backend(), name, 60_000);
      const { backend, locks, deliver } = await delayed(stage, ttlMs, false);
      await assert.rejects(locks.lock(name).acquire({ waitMs: 20 }), { code: 'LOCK_BACKEND' });
      assert.equal((await deliver()).status, 'contended');
      const other = await stage.client({ waitMs: 30_000 });
      const waiting = other.locks.lock(name).acquire();
      await backend.release(held, openCall);
      const releasedAt = performance.now();
      const lease = await waiting;
      const tookMs = performance.now() - releasedAt;
      assert.ok(
        tookMs <= ttlMs + 3 * slackMs + idleGapMs,
        `the ghost kept it for ${tookMs} ms with a ttl of ${ttlMs}`,
      );
      await lease.release();
    },
  },
  {
    id: 'idempotence/lost-reply-of-release',
    clause: '§2.4',
    title: 'a release whose reply was lost is sent again, and "not held" then is no loss',
    async run(stage) {
      const name = stage.name();
      let sendings = 0;
      const { backend, locks } = await stage.client({
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
    async run(stage) {
      const name = stage.name();
      const { locks } = await stage.client({
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
    title: 'a release that gets no answer is sent again for a second at most, then rejects with LOCK_BACKEND',
    async run(stage) {
      let sendings = 0;
      const { locks } = await stage.client({
        ttlMs: 60_000,
        wrap: (real) =>
          delegate(real, {
            release() {
              sendings += 1;
              return sendings === 1 ? new Promise(() => {}) : Promise.reject(new NoReply('release'));
            },
          }),
      });
      const lease = await locks.lock(stage.name()).acquire();
      const startedAt = performance.now();
      await assert.rejects(lease.release(), { code: 'LOCK_BACKEND' });
      const tookMs = performance.now() - startedAt;
      assert.ok(sendings >= 2, 'it was sent once');
      assert.ok(tookMs <= 1_000 + 3 * stage.timing.slackMs, `it took ${tookMs} ms`);
    },
  },
  {
    id: 'idempotence/renewal-sent-twice',
    clause: '§1.5',
    title: 'a renewal that reaches the store twice leaves the lease as one does',
    async run(stage) {
      const name = stage.name();
      const backend = await stage.backend();
      const held = await grab(backend, name, 60_000);
      const item = { grant: held, ttlMs: 60_000 };
      const standings = [
        ...(await backend.renew([item, item], openCall)),
        ...(await backend.renew([item], openCall)),
      ];
      assert.deepEqual(
        standings.map(({ status }) => status),
        ['held', 'held', 'held'],
      );
      const attempt = await backend.attempt(exclusiveRequest(name, 60_000), false, openCall);
      assert.equal(attempt.status, 'contended');
      assert.equal(await backend.release(held, openCall), 'released');
      assert.deepEqual(await holdersOf(backend, name), []);
    },
  },
];
