// One file: the cases of a semaphore, which share their steps.
import assert from 'node:assert/strict';
import type { LockMode } from '../../src/backend/types.ts';
import type { Lock } from '../../src/lock.ts';
import type { ConformanceCase } from '../case.ts';
import { describe, isLockError } from '../../src/errors.ts';
import { assertCompatible, enter, type CriticalSection } from '../critical-section.ts';
import { leaseTenure, needs, permits, processes } from '../needs.ts';
import { grab, holdersOf, openCall, requestOf } from '../raw.ts';
import { LEAST_ROUNDS, roundsUpTo } from '../rounds.ts';

export const permitsCases: readonly ConformanceCase[] = [
  {
    id: 'permits/no-more-than-there-are',
    clause: '§15.5',
    title: 'of two permits a third client gets none until one is released',
    ...needs(permits),
    async run(context) {
      const name = context.name();
      const [one, two, three] = [await context.client(), await context.client(), await context.client()];
      const first = await one.locks.semaphore(name, 2).acquire();
      const second = await two.locks.semaphore(name, 2).tryAcquire();
      assert.ok(second, 'there were two permits, and the second was refused');
      assert.equal(await three.locks.semaphore(name, 2).tryAcquire(), undefined);
      await first.release();
      const third = await three.locks.semaphore(name, 2).tryAcquire();
      assert.ok(third, 'a permit was released, and the next request was refused');
      assert.equal(await one.locks.semaphore(name, 2).tryAcquire(), undefined);
      await second.release();
      await third.release();
      assert.deepEqual((await one.locks.inspect(name)).holders, []);
    },
  },
  {
    id: 'permits/weights-add-up',
    clause: '§15.5',
    title: 'weights add up, and a release returns the whole weight',
    ...needs(permits),
    async run(context) {
      const slots = (await context.client()).locks.semaphore(context.name(), 5);
      for (let round = 0; round < 2; round += 1) {
        const three = await slots.acquire({ weight: 3 });
        assert.equal(await slots.tryAcquire({ weight: 3 }), undefined);
        const two = await slots.tryAcquire({ weight: 2 });
        assert.ok(two, 'two of five permits were free, and refused');
        assert.equal(await slots.tryAcquire(), undefined);
        await three.release();
        const again = await slots.tryAcquire({ weight: 3 });
        assert.ok(again, 'three permits were released, and refused');
        await again.release();
        await two.release();
      }
      const all = await slots.tryAcquire({ weight: 5 });
      assert.ok(all, 'a release did not return the whole weight');
      await all.release();
    },
  },
  {
    id: 'permits/never-too-many-inside',
    clause: '§15.5',
    title: 'clients take permits of random weight, and the holders together never weigh more than the limit',
    ...needs(permits),
    async run(context) {
      const name = context.name();
      const sections: CriticalSection[] = [];
      const contend = async (who: string): Promise<void> => {
        const slots = (await context.client({ waitMs: 30_000 })).locks.semaphore(name, 4);
        for (const round of roundsUpTo(10)) {
          const lease = await slots.acquire({ weight: 1 + Math.floor(context.random.between(0, 3)) });
          sections.push(
            await enter(lease, `${who} #${round}`, () => context.sleep(context.random.between(0, 3))),
          );
        }
      };
      await Promise.all(['a', 'b', 'c', 'd', 'e'].map(contend));
      assert.ok(sections.length >= 5 * LEAST_ROUNDS);
      assertCompatible(sections, context.seed);
    },
  },
  {
    id: 'permits/over-three-processes',
    clause: '§15.5',
    title: 'three processes never hold more permits together than there are',
    ...needs(processes, permits),
    async run(context) {
      const name = context.name();
      const children = await Promise.all([context.child(), context.child(), context.child()]);
      const kinds = [1, 2, 1].map((weight) => ({ permits: 2, weight }));
      const sections = await Promise.all(
        children.map((child, index) =>
          child.contend(name, `process ${index}`, { rounds: 24, holdMs: 1, waitMs: 30_000, kinds }),
        ),
      );
      assert.ok(sections.flat().length >= 3 * LEAST_ROUNDS);
      assertCompatible(sections.flat(), context.seed);
    },
  },
  {
    id: 'permits/another-limit-is-a-conflict',
    clause: '§15.7',
    title: 'a request with another limit is refused while the resource is in use, and leaves nothing behind',
    ...needs(permits),
    async run(context) {
      const name = context.name();
      const [one, two] = [await context.client(), await context.client()];
      const held = await one.locks.semaphore(name, 2).acquire();
      const other = two.locks.semaphore(name, 3);
      await assert.rejects(other.acquire(), (error) => isLockError(error, 'LOCK_CONFLICT'));
      await assert.rejects(other.tryAcquire(), (error) => isLockError(error, 'LOCK_CONFLICT'));
      const free = context.name();
      const set = two.locks.all([two.locks.lock(free), other]);
      await assert.rejects(set.tryAcquire(), (error) => isLockError(error, 'LOCK_CONFLICT'));
      await assert.rejects(set.acquire(), (error) => isLockError(error, 'LOCK_CONFLICT'));
      await context.until(
        'the members that a refused set had taken are free again',
        async () => (await one.locks.inspect(free)).holders.length === 0,
      );
      const { holders, waiters } = await one.locks.inspect(name);
      assert.equal(holders.length + waiters.length, 1);
      await held.release();
      const lease = await other.acquire();
      await lease.release();
    },
  },
  {
    id: 'permits/beside-a-lock-is-a-conflict',
    clause: '§15.7',
    title: 'one name is a semaphore or a lock (exclusive or shared), not both at a time',
    ...needs(permits),
    async run(context) {
      const name = context.name();
      const { backend, locks } = await context.client();
      const isConflict = (error: unknown): boolean => isLockError(error, 'LOCK_CONFLICT');
      const kinds: Lock[] = [locks.lock(name)];
      if (backend.capabilities.modes.includes('shared')) kinds.push(locks.readWriteLock(name).read);
      for (const kind of kinds) {
        const lock = await kind.acquire();
        await assert.rejects(locks.semaphore(name, 2).acquire(), isConflict);
        await assert.rejects(locks.semaphore(name, 2).tryAcquire(), isConflict);
        await assert.rejects(locks.semaphore(name, 2).resize(3), isConflict);
        await lock.release();
        const permit = await locks.semaphore(name, 2).acquire();
        await assert.rejects(kind.acquire(), isConflict);
        await assert.rejects(kind.tryAcquire(), isConflict);
        await permit.release();
      }
      const next = await locks.lock(name).tryAcquire();
      assert.ok(next, 'a refused request left something behind');
      await next.release();
    },
  },
  {
    id: 'permits/every-permit-has-its-own-end',
    clause: '§15.3',
    title: 'the permit of a dead client is free after its ttl, although the others renew theirs',
    ...needs(leaseTenure, permits),
    async run(context) {
      const name = context.name();
      const { ttlMs, slackMs, idleGapMs } = context.timing;
      const backend = await context.backend();
      const slots = (await context.client()).locks.semaphore(name, 3);
      const living = await slots.acquire({ ttlMs: 60_000 });
      const dead = await grab(backend, name, ttlMs, permit(3, 2));
      assert.equal(await slots.tryAcquire(), undefined);
      await living.renew();
      const elapsed = context.stopwatch();
      const two = await slots.acquire({ weight: 2, waitMs: 20 * slackMs });
      const bound = ttlMs + idleGapMs + 2 * slackMs;
      assert.ok(elapsed() < bound, `it took ${Math.round(elapsed())} ms, more than ${bound}`);
      const [renewalStatus] = await backend.renew([{ grant: dead, ttlMs }], openCall);
      assert.equal(renewalStatus?.status, 'lost', 'an expired permit was renewed');
      await living.renew();
      await Promise.all([living.release(), two.release()]);
    },
  },
  {
    id: 'permits/not-issued-twice-after-an-end',
    clause: '§15.5',
    title: 'a client that returns after the end of its permit releases no permit of another client',
    ...needs(leaseTenure, permits),
    async run(context) {
      const name = context.name();
      const { ttlMs, slackMs } = context.timing;
      const backend = await context.backend();
      const stale = await grab(backend, name, ttlMs, permit(2, 1));
      const slots = (await context.client()).locks.semaphore(name, 2);
      const both = await slots.acquire({ weight: 2, waitMs: 20 * slackMs });
      assert.equal(await backend.release(stale, openCall), 'not-held');
      await backend.abandon(stale.request, openCall);
      assert.equal(await slots.tryAcquire(), undefined, 'a held permit was granted again');
      await both.release();
      const first = await slots.acquire();
      const second = await slots.acquire();
      assert.equal(await slots.tryAcquire(), undefined, 'three of two permits were granted');
      await Promise.all([first.release(), second.release()]);
    },
  },
  {
    id: 'permits/clients-clocks-do-not-count',
    clause: '§15.5',
    title: 'a client whose clock is an hour off neither ends permits of others nor keeps its own for longer',
    ...needs(leaseTenure, permits),
    async run(context) {
      const name = context.name();
      const { ttlMs, slackMs } = context.timing;
      const [backend, odd] = [await context.backend(), await context.backend()];
      const mine = await grab(backend, name, 30_000, permit(2, 1));
      for (const hours of [1, -1]) {
        const call = { ...openCall, now: () => openCall.now() + hours * 3_600_000 };
        const request = requestOf(name, permit(2, 1), ttlMs);
        const sentAt = openCall.now();
        assert.equal((await odd.attempt(request, false, call)).status, 'granted');
        const third = await odd.attempt(requestOf(name, permit(2, 1), ttlMs), false, call);
        // On a machine that stands still the second has ended by then.
        assert.ok(
          third.status === 'contended' || openCall.now() - sentAt > ttlMs,
          'a third of two permits was granted',
        );
        await context.until(
          'the permit of the client with the wrong clock ends by its ttl',
          async () => (await holdersOf(backend, name)).length === 1,
          ttlMs + slackMs * 5,
        );
      }
      assert.equal(await backend.release(mine, openCall), 'released');
    },
  },
  {
    id: 'permits/repeated-attempt-is-the-same-permit',
    clause: '§2.1',
    title: 'an attempt repeated with one id takes no second permit',
    ...needs(permits),
    async run(context) {
      const name = context.name();
      const backend = await context.backend();
      const request = requestOf(name, permit(2, 1), 30_000);
      const first = await backend.attempt(request, false, openCall);
      const again = await backend.attempt(request, false, openCall);
      assert.equal(first.status, 'granted');
      if (first.status !== 'granted' || again.status !== 'granted') assert.fail('not granted again');
      assert.equal(again.grant.fencingToken, first.grant.fencingToken);
      const other = await grab(backend, name, 30_000, permit(2, 1));
      assert.equal(
        (await backend.attempt(request, false, openCall)).status,
        'granted',
        'a repeated attempt of an id that holds was refused',
      );
      await backend.release(again.grant, openCall);
      const third = await grab(backend, name, 30_000, permit(2, 1));
      await backend.release(other, openCall);
      await backend.release(third, openCall);
    },
  },
  {
    id: 'permits/re-entered-as-they-are',
    clause: '§5.2',
    title: 'a lease of permits is re-entered without taking more, and cannot grow',
    ...needs(permits),
    async run(context) {
      const slots = (await context.client()).locks.semaphore(context.name(), 3);
      const lease = await slots.acquire({ weight: 2 });
      const nested = await slots.acquire({ weight: 2, within: lease });
      assert.equal(lease.holdCount, 2);
      await nested.release();
      await assert.rejects(slots.acquire({ weight: 3, within: lease }), (error) =>
        isLockError(error, 'LOCK_REENTRANT'),
      );
      const rest = await slots.tryAcquire();
      assert.ok(rest, 'a re-entry took a permit');
      await rest.release();
      await lease.release();
    },
  },
  {
    id: 'permits/bad-numbers-are-refused',
    clause: '§13.3',
    title: 'a limit or a weight that is no whole number above 0, or a weight above the limit, is refused',
    ...needs(permits),
    async run(context) {
      const name = context.name();
      const { locks } = await context.client();
      const isInvalid = (error: unknown): boolean => isLockError(error, 'LOCK_INVALID_ARGUMENT');
      const odd: readonly unknown[] = [
        0,
        -1,
        1.5,
        Number.NaN,
        Number.POSITIVE_INFINITY,
        '2',
        null,
        undefined,
        2 ** 53,
      ];
      for (const value of odd) {
        assert.throws(() => locks.semaphore(name, value as number), isInvalid, `permits ${String(value)}`);
        if (value === undefined) continue;
        const acquiring = locks.semaphore(name, 2).acquire({ weight: value as number });
        await assert.rejects(acquiring, isInvalid, `weight ${describe(value)}`);
      }
      await assert.rejects(locks.semaphore(name, 2).acquire({ weight: 3 }), isInvalid);
      assert.deepEqual((await locks.inspect(name)).holders, []);
    },
  },
];

function permit(limit: number, weight: number): LockMode {
  return { kind: 'permit', limit, weight };
}
