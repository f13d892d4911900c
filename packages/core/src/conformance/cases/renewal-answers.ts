import assert from 'node:assert/strict';
import type { ConformanceCase } from '../case.ts';
import { delegate, NoReply } from '../delegate.ts';
import { leaseTenure, needs } from '../needs.ts';
import { grab, holdersOf, openCall } from '../raw.ts';
import { RenewalLog } from '../renewal-log.ts';

/** What the answers to renewals do to a lease, and what a renewal does to what is absent. */
export const renewalAnswerCases: readonly ConformanceCase[] = [
  {
    id: 'renewal/released-lease-is-not-renewed',
    clause: '§4.1',
    title: 'nothing renews a lease after its release, and the answer to a renewal on its way changes nothing',
    ...needs(leaseTenure),
    async run(stage) {
      const name = stage.name();
      const ttlMs = stage.livingTtlMs;
      let answer: (() => void) | undefined;
      const log = new RenewalLog(async (items) => {
        await new Promise<void>((resolve) => (answer = resolve));
        return items.map(() => ({ status: 'held' }));
      });
      const { backend, locks } = await stage.client({ ttlMs, wrap: log.wrap });
      const lease = await locks.lock(name).acquire();
      await stage.until('a renewal is on its way', () => answer !== undefined, ttlMs);
      const released = lease.release();
      const renewals = log.of(lease.acquisitionId).length;
      await released;
      answer?.();
      await stage.sleep(ttlMs / 2);
      assert.equal(log.of(lease.acquisitionId).length, renewals, 'it was renewed after its release');
      assert.equal(lease.validForMs, 0);
      assert.equal(lease.signal.aborted, false);
      assert.deepEqual(await holdersOf(backend, name), []);
    },
  },
  {
    id: 'renewal/recreates-nothing',
    clause: '§1.5',
    title: 'to renew what was released or ran out is answered with lost, and the resource stays free',
    ...needs(leaseTenure),
    async run(stage) {
      const [released, expired] = [stage.name(), stage.name()];
      const backend = await stage.backend();
      const grants = [
        await grab(backend, released, 60_000),
        await grab(backend, expired, stage.timing.ttlMs),
      ];
      if (grants[0] !== undefined) await backend.release(grants[0], openCall);
      await stage.until('the other ran out', async () => (await holdersOf(backend, expired)).length === 0);
      const standings = await backend.renew(
        grants.map((grant) => ({ grant, ttlMs: 60_000 })),
        openCall,
      );
      assert.deepEqual(
        standings.map(({ status }) => status),
        ['lost', 'lost'],
      );
      const { locks } = await stage.client();
      for (const name of [released, expired]) {
        assert.deepEqual(await holdersOf(backend, name), []);
        const lease = await locks.lock(name).tryAcquire();
        assert.ok(lease, 'a renewal took what was free');
        await lease.release();
      }
    },
  },
  {
    id: 'renewal/answers-in-order',
    clause: '§1.5',
    title: 'a renewal of many leases answers for each, in the order asked',
    ...needs(leaseTenure),
    async run(stage) {
      const backend = await stage.backend();
      const items = [];
      for (let index = 0; index < 7; index += 1) {
        const grant = await grab(backend, stage.name(), 60_000);
        if (index % 3 === 1) await backend.release(grant, openCall);
        items.push({ grant, ttlMs: 60_000 + 1_000 * index });
      }
      const standings = await backend.renew(items, openCall);
      const expected = items.map((_, index) => (index % 3 === 1 ? 'lost' : 'held'));
      assert.deepEqual(
        standings.map(({ status }) => status),
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
    async run(stage) {
      const { slackMs } = stage.timing;
      const ttlMs = stage.livingTtlMs;
      const error = new NoReply('renewal');
      const silent = new RenewalLog(() => Promise.reject(error));
      const vague = new RenewalLog(async (items) => items.map(() => ({ status: 'unknown', error })));
      const loses = async (log: RenewalLog): Promise<void> => {
        const { locks } = await stage.client({ ttlMs, wrap: log.wrap });
        const sentAt = performance.now();
        const lease = await locks.lock(stage.name()).acquire();
        const heldAt = performance.now();
        let abortedAt: number | undefined;
        lease.signal.addEventListener('abort', () => (abortedAt = performance.now()), { once: true });
        await stage.until('the lease is lost', () => abortedAt !== undefined, ttlMs + 3 * slackMs);
        assert.ok(log.of(lease.acquisitionId).length >= 2, 'it was not tried again');
        const early = (abortedAt ?? 0) - sentAt;
        assert.ok(early >= ttlMs * 0.9 - 10, `it was lost after ${early} of ${ttlMs} ms`);
        assert.ok((abortedAt ?? 0) - heldAt <= ttlMs + 3 * slackMs);
        assert.equal(lease.signal.reason.reason, 'unconfirmed');
      };
      await Promise.all([loses(silent), loses(vague)]);
    },
  },
  {
    id: 'renewal/unconfirmed-is-abandoned',
    clause: '§2.7',
    title:
      'a lease whose renewals were carried out, and their answers lost, is free soon after it ended for its holder',
    ...needs(leaseTenure),
    async run(stage) {
      const ttlMs = stage.livingTtlMs;
      const log = new RenewalLog(async (_, send) => {
        await send();
        throw new NoReply('renewal');
      });
      const { backend, locks } = await stage.client({ ttlMs, wrap: log.wrap });
      const lease = await locks.lock(stage.name()).acquire();
      const { signal } = lease;
      await stage.until('the lease is lost', () => signal.aborted, ttlMs + 3 * stage.timing.slackMs);
      assert.equal(signal.reason.reason, 'unconfirmed');
      // The store may keep it for two thirds of the ttl and more: it was renewed after the first third.
      await stage.until(
        'the resource is free',
        async () => (await holdersOf(backend, lease.name)).length === 0,
        ttlMs / 2,
      );
    },
  },
  {
    id: 'renewal/failure-is-tried-again',
    clause: '§1.5',
    title: 'a renewal that fails is sent again in time, and the lease lives',
    ...needs(leaseTenure),
    async run(stage) {
      const ttlMs = stage.livingTtlMs;
      const log = new RenewalLog((_, send, index) =>
        index % 2 === 0 ? Promise.reject(new NoReply('renewal')) : send(),
      );
      const { locks } = await stage.client({ ttlMs, wrap: log.wrap });
      const lease = await locks.lock(stage.name()).acquire();
      await stage.until('it was renewed twice', () => log.of(lease.acquisitionId).length >= 4, 3 * ttlMs);
      await stage.sleep(ttlMs / 2);
      lease.assertValid();
      await lease.release();
    },
  },
  {
    id: 'renewal/unanswered-renew-leaves-the-lease',
    clause: '§1.5',
    title: 'lease.renew() without an answer rejects with LOCK_BACKEND, and moves no end back',
    ...needs(leaseTenure),
    async run(stage) {
      const error = new NoReply('renewal');
      const log = new RenewalLog(() => Promise.reject(error));
      const { locks } = await stage.client({ ttlMs: 60_000, wrap: log.wrap });
      const lease = await locks.lock(stage.name()).acquire();
      await assert.rejects(lease.renew(3_600_000), { code: 'LOCK_BACKEND', cause: error });
      assert.ok(lease.validForMs > 0 && lease.validForMs <= 60_000 * 0.99);
      lease.assertValid();
      await lease.release();
    },
  },
  {
    id: 'renewal/shorter-ttl-counts-from-sending',
    clause: '§1.7',
    title: 'a shorter ttl given to lease.renew() holds from the moment it is sent, whatever the answer',
    ...needs(leaseTenure),
    async run(stage) {
      const { ttlMs, slackMs } = stage.timing;
      const log = new RenewalLog(() => new Promise(() => {}));
      const { locks } = await stage.client({ ttlMs: 60_000, renewal: 'manual', wrap: log.wrap });
      const lease = await locks.lock(stage.name()).acquire();
      const { signal } = lease;
      const renewing = lease.renew(ttlMs);
      assert.ok(lease.validForMs <= ttlMs * 0.99, `it believes in ${lease.validForMs} ms`);
      await assert.rejects(renewing, ({ code }) => code === 'LOCK_BACKEND' || code === 'LOCK_LOST');
      await stage.until('the lease is lost', () => signal.aborted, ttlMs + 3 * slackMs);
      assert.equal(signal.reason.reason, 'unconfirmed');
    },
  },
  {
    id: 'renewal/lost-answer-ends-at-once',
    clause: '§1.5',
    title: 'a renewal answered with lost ends the lease at once, with the reason that the store gave',
    ...needs(leaseTenure),
    async run(stage) {
      const ttlMs = stage.livingTtlMs;
      const log = new RenewalLog(async (items) =>
        items.map(() => ({ status: 'lost', reason: 'taken-over' })),
      );
      const { locks } = await stage.client({ ttlMs, wrap: log.wrap });
      const lease = await locks.lock(stage.name()).acquire();
      const { signal } = lease;
      await stage.until('the renewal was answered', () => signal.aborted, ttlMs);
      assert.equal(signal.reason.code, 'LOCK_LOST');
      assert.equal(signal.reason.reason, 'taken-over');
      assert.equal(lease.validForMs, 0);
      assert.throws(() => lease.assertValid(), { code: 'LOCK_LOST' });
      const asked = await locks.lock(stage.name()).acquire({ renewal: 'manual', ttlMs: 60_000 });
      await assert.rejects(asked.renew(), { code: 'LOCK_LOST', reason: 'taken-over' });
      assert.ok(asked.signal.aborted);
    },
  },
  {
    id: 'renewal/longer-one-overtakes-a-shorter',
    clause: '§1.7',
    title: 'a longer renewal that overtakes a shorter one is believed only while nobody else can hold',
    ...needs(leaseTenure),
    async run(stage) {
      const name = stage.name();
      const ttlMs = stage.livingTtlMs;
      let goOn = (): void => {};
      const gate = new Promise<void>((resolve) => (goOn = resolve));
      let sent = 0;
      const { locks } = await stage.client({
        ttlMs,
        wrap: (backend) =>
          delegate(backend, {
            async renew(...args) {
              sent += 1;
              // The watchdog's is carried out only when the holder's own has been answered.
              if (sent === 1) await gate;
              return backend.renew(...args);
            },
          }),
      });
      const { locks: others } = await stage.client();
      const lease = await locks.lock(name).acquire();
      await stage.until('the watchdog renews', () => sent > 0, ttlMs);
      await lease.renew(20 * ttlMs);
      goOn();
      const elapsed = stage.stopwatch();
      while (elapsed() < ttlMs + 2 * stage.timing.slackMs) {
        const other = await others.lock(name).tryAcquire();
        if (other !== undefined) assert.equal(lease.validForMs, 0, 'another holds, and the lease is valid');
        await stage.sleep(ttlMs / 10);
      }
      lease.assertValid();
      await lease.release();
    },
  },
];
