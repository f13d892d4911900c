// One file: the cases of a set, which share their steps.
import assert from 'node:assert/strict';
import type { AcquireRequest, Grant, LockBackend } from '../../src/backend/types.ts';
import type { LockManager } from '../../src/create-locks.ts';
import type { MultiLock } from '../../src/compose/multi-lock.ts';
import { CallCounter } from '../around-calls.ts';
import type { ConformanceCase } from '../case.ts';
import { isLockError } from '../../src/errors.ts';
import { assertExclusive, machineNow, type CriticalSection } from '../critical-section.ts';
import { fencing, fifo, leaseTenure, many, needs } from '../needs.ts';
import { untilAnswered, exclusiveRequest, holdersOf, openCall } from '../raw.ts';
import { SafetyViolation } from '../safety-violation.ts';
import type { CaseContext } from '../case-context.ts';
import { startWaiting, watch } from '../waiter.ts';

function allOf(locks: LockManager, names: readonly string[]): MultiLock {
  return locks.all(names.map((name) => locks.lock(name)));
}

export const allCases: readonly ConformanceCase[] = [
  {
    id: 'all/all-or-nothing',
    clause: '§16.1',
    title:
      'while one of three locks is held, a multi-lock gets none of them, neither by a try nor after a wait',
    async run(context) {
      const names = [context.name(), context.name(), context.name()];
      const [holder, other, witness] = [
        await context.client(),
        await context.client(),
        await context.client(),
      ];
      for (const held of names) {
        const lease = await holder.locks.lock(held).acquire();
        assert.equal(await allOf(other.locks, names).tryAcquire(), undefined);
        await assert.rejects(allOf(other.locks, names).acquire({ waitMs: 2 * context.busyMs }), (error) =>
          isLockError(error, 'LOCK_TIMEOUT'),
        );
        for (const free of names.filter((name) => name !== held)) {
          await context.until('the others are free', async () => {
            const taken = await witness.locks.lock(free).tryAcquire();
            await taken?.release();
            return taken !== undefined;
          });
        }
        await lease.release();
      }
      const set = await allOf(other.locks, names).acquire();
      for (const name of names) assert.equal(await witness.locks.lock(name).tryAcquire(), undefined);
      await set.release();
      for (const name of names) await (await witness.locks.lock(name).acquire()).release();
    },
  },
  {
    id: 'all/opposite-orders-never-block',
    clause: '§16.2',
    title: 'clients that name the same locks in opposite orders never wait for each other',
    async run(context) {
      const names = [context.name(), context.name(), context.name()];
      const sections: CriticalSection[] = [];
      const contend = async (who: string, ordered: readonly string[]): Promise<void> => {
        const { locks } = await context.client({ waitMs: 30_000 });
        const together = allOf(locks, ordered);
        for (let round = 0; round < 8; round += 1) {
          await together.run(async () => {
            const enteredAt = machineNow();
            await new Promise((resolve) => setImmediate(resolve));
            sections.push({ who: `${who} #${round}`, enteredAt, leftAt: machineNow() });
          });
        }
      };
      await Promise.all([
        contend('forth', names),
        contend('back', [...names].reverse()),
        contend('mixed', [...names.slice(1), ...names.slice(0, 1)]),
      ]);
      assert.equal(sections.length, 24);
      assertExclusive(sections, context.seed);
    },
  },
  {
    id: 'all/waits-for-every-member',
    clause: '§16.1',
    title: 'a multi-lock is granted when the last of its held members is released',
    async run(context) {
      const names: [string, string] = [context.name(), context.name()];
      const holder = await context.client();
      const leases = [
        await holder.locks.lock(names[0]).acquire(),
        await holder.locks.lock(names[1]).acquire(),
      ];
      const { locks } = await context.client();
      const acquiring = allOf(locks, names).acquire({ waitMs: 60_000 });
      const waiting = watch(acquiring);
      await leases[1]?.release();
      await context.sleep(context.timing.slackMs / 4);
      assert.equal(waiting.settled, false, 'the multi-lock was granted while one member was held');
      await leases[0]?.release();
      const set = await acquiring;
      assert.deepEqual(
        set.leases.map(({ name }) => name),
        names,
      );
      await set.release();
    },
  },
  {
    id: 'all/one-deadline',
    clause: '§16.3',
    title: 'waitMs is one limit for the whole multi-lock, not one for each member',
    async run(context) {
      const { slackMs } = context.timing;
      const names = [context.name(), context.name(), context.name()].sort();
      const holder = await context.client();
      const held = await Promise.all(names.map((name) => holder.locks.lock(name).acquire()));
      const { locks } = await context.client();
      const waitMs = 10 * slackMs;
      const elapsed = context.stopwatch();
      const acquiring = allOf(locks, names).acquire({ waitMs });
      watch(acquiring);
      // The last member is free after half of waitMs: the other half is enough for a slow store to answer.
      for (const lease of held.slice(0, 2)) {
        await context.sleep(2.5 * slackMs);
        await lease.release();
      }
      await assert.rejects(acquiring, (error) => isLockError(error, 'LOCK_TIMEOUT'));
      assert.ok(elapsed() < waitMs + 2 * slackMs, `it took ${Math.round(elapsed())} ms, more than waitMs`);
      await held[2]?.release();
    },
  },
  {
    id: 'all/the-loss-of-one-is-the-loss-of-all',
    clause: '§16.3',
    title: 'when one member is lost, the common signal aborts and nothing of the whole is valid',
    ...needs(leaseTenure),
    async run(context) {
      const { ttlMs, slackMs } = context.timing;
      const { locks } = await context.client();
      const short = locks.lock(context.name(), { ttlMs, renewal: 'manual' });
      const long = locks.lock(context.name(), { ttlMs: 60_000 });
      const set = await locks.all([long, short]).acquire();
      const { signal } = set;
      assert.ok(set.validForMs <= ttlMs, 'not the smallest validity');
      await context.until('the signal aborts', () => signal.aborted, ttlMs + slackMs * 5);
      assert.ok(isLockError(signal.reason, 'LOCK_LOST'));
      assert.equal(set.validForMs, 0);
      assert.throws(
        () => set.assertValid(),
        (error) => isLockError(error, 'LOCK_LOST'),
      );
      assert.ok((set.leases[0]?.validForMs ?? 0) > 0, 'the other member is lost too');
      await assert.rejects(set.release(), (error) => isLockError(error, 'LOCK_LOST'));
      await (await locks.lock(long.name).acquire()).release();
      const working = locks.all([long, short]).run(() => context.sleep(ttlMs + slackMs));
      await assert.rejects(working, (error) => isLockError(error, 'LOCK_LOST'));
    },
  },
  {
    id: 'all/an-abort-leaves-nothing',
    clause: '§16.1',
    title: 'an abort while the multi-lock waits for its last member releases the first ones',
    async run(context) {
      const names = [context.name(), context.name()].sort() as [string, string];
      const holder = await context.client();
      const last = await holder.locks.lock(names[1]).acquire();
      const abort = new AbortController();
      const { locks } = await context.client();
      const acquiring = allOf(locks, names).acquire({ waitMs: 60_000, signal: abort.signal });
      watch(acquiring);
      await context.until(
        'the first is taken',
        async () => (await holdersOf(holder.backend, names[0] as string)).length === 1,
      );
      abort.abort(new Error('enough'));
      await assert.rejects(acquiring, /enough/);
      await context.until(
        'the first is free',
        async () => (await holdersOf(holder.backend, names[0] as string)).length === 0,
      );
      await last.release();
      const both = await allOf(holder.locks, names).acquire({ waitMs: 20 * context.timing.slackMs });
      await both.release();
    },
  },
  {
    id: 'all/a-token-for-every-member',
    clause: '§16.3',
    title: 'the lease of each member, in the given order, has the token of its resource',
    ...needs(fencing),
    async run(context) {
      const names = [context.name(), context.name()].sort().reverse() as [string, string];
      const { locks } = await context.client();
      const before = await Promise.all(names.map((name) => locks.lock(name).acquire()));
      await Promise.all(before.map((lease) => lease.release()));
      const set = await allOf(locks, names).acquire();
      set.leases.forEach((lease, index) => {
        assert.equal(lease.name, names[index]);
        assert.ok((lease.fencingToken ?? 0n) > (before[index]?.fencingToken ?? 0n));
      });
      await set.renew();
      await set.release();
    },
  },
  {
    id: 'all/over-two-managers',
    clause: '§16.1',
    title: 'the members of a multi-lock may belong to several managers',
    async run(context) {
      const names: [string, string] = [context.name(), context.name()];
      const [one, two] = [await context.client(), await context.client()];
      const set = await one.locks.all([two.locks.lock(names[0]), one.locks.lock(names[1])]).acquire();
      for (const name of names) assert.equal(await two.locks.lock(name).tryAcquire(), undefined);
      await set.release();
      for (const name of names) await (await one.locks.lock(name).acquire()).release();
    },
  },
  {
    id: 'all/what-contradicts-itself-is-refused',
    clause: '§13.3',
    title:
      'a multi-lock with one lock twice, with no lock, or with something that is no lock is refused at once',
    async run(context) {
      const { locks } = await context.client();
      const lock = locks.lock(context.name());
      const isInvalid = (error: unknown): boolean => isLockError(error, 'LOCK_INVALID_ARGUMENT');
      for (const odd of [[lock, lock], [lock, locks.lock(lock.name)], [], undefined, [{}], ['a']]) {
        assert.throws(() => locks.all(odd as never), isInvalid, JSON.stringify(odd));
      }
      const lease = await lock.acquire();
      for (const odd of [{ within: lease }, { steal: true }, { waitMs: -1 }]) {
        await assert.rejects(
          locks.all([lock]).acquire(odd as object),
          isInvalid,
          JSON.stringify(Object.keys(odd)),
        );
      }
      await lease.release();
    },
  },
  {
    id: 'all/in-one-step',
    clause: '§16.4',
    title: 'an uncontended set is taken by one call, a contended one keeps no member',
    ...needs(many),
    async run(context) {
      const names = [context.name(), context.name(), context.name()];
      const calls = new CallCounter();
      const { locks } = await context.client({ wrap: calls.wrap });
      const set = await allOf(locks, names).acquire();
      assert.equal(calls.of('attemptMany'), 1);
      assert.equal(calls.of('attempt'), 0);
      assert.equal(await allOf(locks, names).tryAcquire(), undefined);
      await set.leases[0]?.release();
      assert.equal(await allOf(locks, names).tryAcquire(), undefined);
      const first = await locks.lock(names[0] as string).tryAcquire();
      assert.ok(first, 'a contended set kept one of its members');
      await first.release();
      await set.leases[1]?.release();
      await set.leases[2]?.release();
    },
  },
  {
    id: 'all/one-step-repeated',
    clause: '§2.1',
    title: 'a repeated attemptMany gives the same grants, and none once another client holds a member',
    ...needs(many, leaseTenure),
    async run(context) {
      const names: [string, string] = [context.name(), context.name()];
      const backend = await context.backend();
      const requests = names.map((name) => exclusiveRequest(name, 30_000));
      const grants = await backend.attemptMany?.(requests, openCall);
      const again = await backend.attemptMany?.(requests, openCall);
      assert.equal(grants?.length, 2);
      assert.deepEqual(
        again?.map(({ fencingToken }) => fencingToken),
        grants?.map(({ fencingToken }) => fencingToken),
      );
      for (const [index, grant] of (grants ?? []).entries()) {
        assert.equal(grant.request.acquisitionId, requests[index]?.acquisitionId);
        assert.equal(await backend.release(grant, openCall), 'released');
      }
      for (const name of names) assert.deepEqual(await holdersOf(backend, name), []);
      await Promise.all([0, 1].map((lost) => oneIsLost(context, backend, lost)));
    },
  },
  {
    id: 'all/one-step-does-not-overtake',
    clause: '§7.4',
    title: 'attemptMany gets nothing while somebody waits for a member',
    ...needs(many, fifo),
    async run(context) {
      const names: [string, string] = [context.name(), context.name()];
      const holder = await context.client();
      const held = await holder.locks.lock(names[0]).acquire();
      const waiter = await startWaiting(context, names[0] as string, { waitMs: 60_000 });
      const { backend } = await context.client();
      const released = held.release();
      for (let tries = 0; tries < 10; tries += 1) {
        const requests = names.map((name) => exclusiveRequest(name, 30_000));
        const grants = await backend.attemptMany?.(requests, openCall);
        assert.equal(grants, undefined, 'attemptMany overtook a waiter');
      }
      await released;
      const lease = await waiter.lease;
      assert.deepEqual(await holdersOf(backend, names[1] as string), []);
      await lease.release();
    },
  },
];

/** Repeats attemptMany after one of its two holds ran out and went to another client: the repetition must get nothing. */
async function oneIsLost(context: CaseContext, backend: LockBackend, lost: number): Promise<void> {
  const { ttlMs } = context.timing;
  const [requests, grants] = await grabBoth(
    context,
    backend,
    [0, 1].map((index) => (index === lost ? ttlMs : 60_000)),
  );
  const [gone, kept] = [requests[lost], requests[1 - lost]] as [AcquireRequest, AcquireRequest];
  const { locks } = await context.client({ ttlMs: 60_000, waitMs: 60_000 });
  const successor = await locks.lock(gone.resource).acquire();
  const again = await untilAnswered(context, backend, async () => backend.attemptMany?.(requests, openCall));
  if (again !== undefined) throw new SafetyViolation('attemptMany was granted what another client holds');
  assert.deepEqual(await holdersOf(backend, gone.resource), [successor.acquisitionId]);
  for (const holder of (await backend.inspect(kept.resource, openCall)).holders) {
    assert.equal(holder.acquisitionId, kept.acquisitionId);
    assert.equal(holder.fencingToken, grants[1 - lost]?.fencingToken, 'it took a new hold');
  }
  for (const request of requests) await backend.abandon(request, openCall);
  await successor.renew();
  await successor.release();
  for (const { resource } of requests) assert.deepEqual(await holdersOf(backend, resource), []);
}

/**
 * Takes free resources in one step, with these ttls. A step that took most of the shorter ttl may have released it for a
 * good reason, and is repeated.
 */
async function grabBoth(
  context: CaseContext,
  backend: LockBackend,
  ttls: readonly number[],
): Promise<[readonly AcquireRequest[], readonly Grant[]]> {
  for (;;) {
    const requests = ttls.map((ttlMs) => exclusiveRequest(context.name(), ttlMs));
    const startedAt = performance.now();
    const grants = await backend.attemptMany?.(requests, openCall);
    if (grants !== undefined) return [requests, grants];
    assert.ok(
      performance.now() - startedAt > Math.min(...ttls) / 2,
      'both resources are free, and none was granted',
    );
  }
}
