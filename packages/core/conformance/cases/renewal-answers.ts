// One file: the cases of an answer to a renewal, one for each answer.
import assert from 'node:assert/strict';
import type { AcquireRequest, Grant } from '../../src/backend/types.ts';
import type { CaseContext } from '../case-context.ts';
import type { ConformanceCase } from '../case.ts';
import { assertRising } from '../critical-section.ts';
import { delegate, NoReply } from '../delegate.ts';
import { fencing, leaseTenure, needs } from '../needs.ts';
import { exclusiveRequest, grab, holdersOf, openCall } from '../raw.ts';
import { RenewalLog } from '../renewal-log.ts';

/** Cases of the answers to renewals, and of renewals of absent holds. */
export const renewalAnswerCases: readonly ConformanceCase[] = [
  {
    id: 'renewal/released-lease-is-not-renewed',
    clause: '§4.1',
    title: 'no renewal follows the release of a lease, and the answer to an earlier renewal changes nothing',
    ...needs(leaseTenure),
    async run(context) {
      const name = context.name();
      const ttlMs = context.livingTtlMs;
      let answer: (() => void) | undefined;
      const log = new RenewalLog(async (items) => {
        await new Promise<void>((resolve) => (answer = resolve));
        return items.map(() => ({ status: 'held' }));
      });
      const { backend, locks } = await context.client({ ttlMs, wrap: log.wrap });
      const lease = await locks.lock(name).acquire();
      await context.until('a renewal is on its way', () => answer !== undefined, ttlMs);
      const released = lease.release();
      const renewals = log.of(lease.acquisitionId).length;
      await released;
      answer?.();
      await context.sleep(ttlMs / 2);
      assert.equal(log.of(lease.acquisitionId).length, renewals, 'the lease was renewed after its release');
      assert.equal(lease.validForMs, 0);
      assert.equal(lease.signal.aborted, false);
      assert.deepEqual(await holdersOf(backend, name), []);
    },
  },
  {
    id: 'renewal/recreates-nothing',
    clause: '§1.5',
    title: 'a renewal of a released or expired hold is answered with lost, and the resource stays free',
    ...needs(leaseTenure),
    async run(context) {
      const [released, expired] = [context.name(), context.name()];
      const backend = await context.backend();
      const grants = [
        await grab(backend, released, 60_000),
        await grab(backend, expired, context.timing.ttlMs),
      ];
      if (grants[0] !== undefined) await backend.release(grants[0], openCall);
      await context.until(
        'the other hold expired',
        async () => (await holdersOf(backend, expired)).length === 0,
      );
      const renewalStatuses = await backend.renew(
        grants.map((grant) => ({ grant, ttlMs: 60_000 })),
        openCall,
      );
      assert.deepEqual(
        renewalStatuses.map(({ status }) => status),
        ['lost', 'lost'],
      );
      const { locks } = await context.client();
      for (const name of [released, expired]) {
        assert.deepEqual(await holdersOf(backend, name), []);
        const lease = await locks.lock(name).tryAcquire();
        assert.ok(lease, 'a renewal took a free resource');
        await lease.release();
      }
    },
  },
  {
    id: 'renewal/confirms-its-own-grant',
    clause: '§1.5',
    title: 'a renewal of a grant that ended is lost, also where the same acquisition holds by a later grant',
    ...needs(leaseTenure, fencing),
    async run(context) {
      await Promise.all([false, true].map((enqueue) => confirmsItsOwn(context, enqueue)));
    },
  },
  {
    id: 'renewal/answers-in-order',
    clause: '§1.5',
    title: 'a renewal of many leases answers for each, in the order of the request',
    ...needs(leaseTenure),
    async run(context) {
      const backend = await context.backend();
      const items = [];
      for (let index = 0; index < 7; index += 1) {
        const grant = await grab(backend, context.name(), 60_000);
        if (index % 3 === 1) await backend.release(grant, openCall);
        items.push({ grant, ttlMs: 60_000 + 1_000 * index });
      }
      const renewalStatuses = await backend.renew(items, openCall);
      const expected = items.map((_, index) => (index % 3 === 1 ? 'lost' : 'held'));
      assert.deepEqual(
        renewalStatuses.map(({ status }) => status),
        expected,
      );
      assert.deepEqual(await backend.renew([], openCall), []);
    },
  },
  {
    id: 'renewal/unknown-moves-nothing',
    clause: '§1.5',
    title: 'a lease whose renewals get no clear answer ends by its deadline, as unconfirmed',
    ...needs(leaseTenure),
    async run(context) {
      const { slackMs } = context.timing;
      const ttlMs = context.livingTtlMs;
      const error = new NoReply('renewal');
      const silent = new RenewalLog(() => Promise.reject(error));
      const vague = new RenewalLog(async (items) => items.map(() => ({ status: 'unknown', error })));
      const loses = async (log: RenewalLog): Promise<void> => {
        const { locks } = await context.client({ ttlMs, wrap: log.wrap });
        const sentAt = performance.now();
        const lease = await locks.lock(context.name()).acquire();
        const heldAt = performance.now();
        let abortedAt: number | undefined;
        lease.signal.addEventListener('abort', () => (abortedAt = performance.now()), { once: true });
        await context.until('the lease is lost', () => abortedAt !== undefined, ttlMs + 3 * slackMs);
        assert.ok(log.of(lease.acquisitionId).length >= 2, 'the renewal was not repeated');
        const early = (abortedAt ?? 0) - sentAt;
        assert.ok(early >= ttlMs * 0.9 - 10, `the lease was lost after ${early} of ${ttlMs} ms`);
        assert.ok((abortedAt ?? 0) - heldAt <= ttlMs + 3 * slackMs);
        assert.equal(lease.signal.reason.reason, 'unconfirmed');
      };
      await Promise.all([loses(silent), loses(vague)]);
    },
  },
  {
    id: 'renewal/unconfirmed-is-abandoned',
    clause: '§2.7',
    title: 'a lease whose renewals lost their answers is free soon after it ended for its holder',
    ...needs(leaseTenure),
    async run(context) {
      const ttlMs = context.livingTtlMs;
      const log = new RenewalLog(async (_, send) => {
        await send();
        throw new NoReply('renewal');
      });
      const { backend, locks } = await context.client({ ttlMs, wrap: log.wrap });
      const lease = await locks.lock(context.name()).acquire();
      const { signal } = lease;
      await context.until('the lease is lost', () => signal.aborted, ttlMs + 3 * context.timing.slackMs);
      assert.equal(signal.reason.reason, 'unconfirmed');
      // The store may keep the hold for two thirds of the ttl and more: it was renewed after the first third.
      await context.until(
        'the resource is free',
        async () => (await holdersOf(backend, lease.name)).length === 0,
        ttlMs / 2,
      );
    },
  },
  {
    id: 'renewal/failure-is-tried-again',
    clause: '§1.5',
    title: 'a failed renewal is sent again in time, and the lease lives',
    ...needs(leaseTenure),
    async run(context) {
      const ttlMs = context.livingTtlMs;
      const log = new RenewalLog((_, send, index) =>
        index % 2 === 0 ? Promise.reject(new NoReply('renewal')) : send(),
      );
      const { locks } = await context.client({ ttlMs, wrap: log.wrap });
      const lease = await locks.lock(context.name()).acquire();
      await context.until('it was renewed twice', () => log.of(lease.acquisitionId).length >= 4, 3 * ttlMs);
      await context.sleep(ttlMs / 2);
      lease.assertValid();
      await lease.release();
    },
  },
  {
    id: 'renewal/unanswered-renew-leaves-the-lease',
    clause: '§1.5',
    title: 'lease.renew() without an answer rejects with LOCK_BACKEND, and does not extend the lease',
    ...needs(leaseTenure),
    async run(context) {
      const error = new NoReply('renewal');
      const log = new RenewalLog(() => Promise.reject(error));
      const { locks } = await context.client({ ttlMs: 60_000, wrap: log.wrap });
      const lease = await locks.lock(context.name()).acquire();
      await assert.rejects(lease.renew(3_600_000), { code: 'LOCK_BACKEND', cause: error });
      assert.ok(lease.validForMs > 0 && lease.validForMs <= 60_000 * 0.99);
      lease.assertValid();
      await lease.release();
    },
  },
  {
    id: 'renewal/shorter-ttl-counts-from-sending',
    clause: '§1.7',
    title: 'a shorter ttl given to lease.renew() applies from the moment it is sent, whatever the answer',
    ...needs(leaseTenure),
    async run(context) {
      const { ttlMs, slackMs } = context.timing;
      const log = new RenewalLog(() => new Promise(() => {}));
      const { locks } = await context.client({ ttlMs: 60_000, renewal: 'manual', wrap: log.wrap });
      const lease = await locks.lock(context.name()).acquire();
      const { signal } = lease;
      const renewing = lease.renew(ttlMs);
      assert.ok(lease.validForMs <= ttlMs * 0.99, `the lease says ${lease.validForMs} ms`);
      await assert.rejects(renewing, ({ code }) => code === 'LOCK_BACKEND' || code === 'LOCK_LOST');
      await context.until('the lease is lost', () => signal.aborted, ttlMs + 3 * slackMs);
      assert.equal(signal.reason.reason, 'unconfirmed');
    },
  },
  {
    id: 'renewal/lost-answer-ends-at-once',
    clause: '§1.5',
    title: 'a renewal answered with lost ends the lease at once, with the reason that the store gave',
    ...needs(leaseTenure),
    async run(context) {
      const ttlMs = context.livingTtlMs;
      const log = new RenewalLog(async (items) =>
        items.map(() => ({ status: 'lost', reason: 'taken-over' })),
      );
      const { locks } = await context.client({ ttlMs, wrap: log.wrap });
      const lease = await locks.lock(context.name()).acquire();
      const { signal } = lease;
      await context.until('the renewal was answered', () => signal.aborted, ttlMs);
      assert.equal(signal.reason.code, 'LOCK_LOST');
      assert.equal(signal.reason.reason, 'taken-over');
      assert.equal(lease.validForMs, 0);
      assert.throws(() => lease.assertValid(), { code: 'LOCK_LOST' });
      const asked = await locks.lock(context.name()).acquire({ renewal: 'manual', ttlMs: 60_000 });
      await assert.rejects(asked.renew(), { code: 'LOCK_LOST', reason: 'taken-over' });
      assert.ok(asked.signal.aborted);
    },
  },
  {
    id: 'renewal/longer-one-overtakes-a-shorter',
    clause: '§1.7',
    title: 'a longer renewal that overtakes a shorter one extends the lease only while nobody else can hold',
    ...needs(leaseTenure),
    async run(context) {
      const name = context.name();
      const ttlMs = context.livingTtlMs;
      let goOn = (): void => {};
      const gate = new Promise<void>((resolve) => (goOn = resolve));
      let sent = 0;
      const { locks } = await context.client({
        ttlMs,
        wrap: (backend) =>
          delegate(backend, {
            async renew(...args) {
              sent += 1;
              // The automatic renewal reaches the store only after the holder's own was answered.
              if (sent === 1) await gate;
              return backend.renew(...args);
            },
          }),
      });
      const { locks: others } = await context.client();
      const lease = await locks.lock(name).acquire();
      await context.until('the automatic renewal is sent', () => sent > 0, ttlMs);
      await lease.renew(20 * ttlMs);
      goOn();
      const elapsed = context.stopwatch();
      while (elapsed() < ttlMs + 2 * context.timing.slackMs) {
        const other = await others.lock(name).tryAcquire();
        if (other !== undefined)
          assert.equal(lease.validForMs, 0, 'another client holds, and the lease is valid');
        await context.sleep(ttlMs / 10);
      }
      lease.assertValid();
      await lease.release();
    },
  },
];

/** An acquisition that attempts again after the end of its hold has another grant, with a token of its own. */
async function confirmsItsOwn(context: CaseContext, enqueue: boolean): Promise<void> {
  const { ttlMs } = context.timing;
  const backend = await context.backend();
  const attempt = async (request: AcquireRequest): Promise<Grant> => {
    const answer = await backend.attempt(request, enqueue, openCall);
    assert.equal(answer.status, 'granted');
    return (answer as { readonly grant: Grant }).grant;
  };
  const renewed = async (grant: Grant): Promise<string | undefined> =>
    (await backend.renew([{ grant, ttlMs: 60_000 }], openCall))[0]?.status;
  for (;;) {
    const request = exclusiveRequest(context.name(), ttlMs);
    const first = await attempt(request);
    await context.until(
      'the first grant ended',
      async () => (await holdersOf(backend, request.resource)).length === 0,
    );
    const sentAt = performance.now();
    const second = await attempt(request);
    const statuses = [await renewed(first), await renewed(second)];
    const tookMs = performance.now() - sentAt;
    assertRising([first.fencingToken, second.fencingToken]);
    await backend.release(second, openCall);
    // A pause of this process may have outlasted the second grant.
    if (tookMs > ttlMs * 0.8) continue;
    assert.deepEqual(statuses, ['lost', 'held']);
    return;
  }
}
