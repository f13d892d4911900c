import assert from 'node:assert/strict';
import type { ConformanceCase } from '../case.ts';
import { isLockError } from '../../src/errors.ts';
import type { Lease } from '../../src/lease.ts';
import { fencing, fifo, needs, permits, shared, steal } from '../needs.ts';
import { exclusiveRequest, grab, holdersOf, openCall } from '../raw.ts';
import { startWaiting, startWaitingFor } from '../waiter.ts';

/** In some rounds the steal comes before the release, or after the next waiter knew of its grant. */
const ROUNDS = 4;

export const stealCases: readonly ConformanceCase[] = [
  {
    id: 'steal/takes-it-at-once',
    clause: '§17.1',
    title: 'an acquire that steals holds at once; the former holder loses its lease with reason taken-over',
    ...needs(steal),
    async run(context) {
      const name = context.name();
      const { ttlMs, slackMs } = context.timing;
      const [holder, successor] = [
        await context.client({ ttlMs: context.livingTtlMs }),
        await context.client(),
      ];
      const former = await holder.locks.lock(name).acquire();
      const { signal } = former;
      const stolen = await successor.locks.lock(name).acquire({ steal: true, waitMs: context.busyMs });
      assert.deepEqual(await holdersOf(successor.backend, name), [stolen.acquisitionId]);
      await context.until(
        'the signal of the former holder aborts',
        () => signal.aborted,
        ttlMs + 8 * slackMs,
      );
      assert.ok(isLockError(signal.reason, 'LOCK_LOST'));
      assert.equal(signal.reason.reason, 'taken-over');
      await assert.rejects(former.release(), (error) => isLockError(error, 'LOCK_LOST'));
      assert.deepEqual(
        await holdersOf(successor.backend, name),
        [stolen.acquisitionId],
        'the former holder ended the hold of its successor',
      );
      await stolen.renew();
      await stolen.release();
    },
  },
  {
    id: 'steal/the-queue-stays-behind',
    clause: '§17.1',
    title: 'the waiters keep their order behind the hold that was stolen',
    ...needs(steal, fifo),
    async run(context) {
      const name = context.name();
      const waitMs = 60_000;
      await (await context.client({ renewal: 'manual', ttlMs: 60_000 })).locks.lock(name).acquire();
      const [first, second] = [
        await startWaiting(context, name, { waitMs }),
        await startWaiting(context, name, { waitMs }),
      ];
      const stolen = await (await context.client()).locks.lock(name).acquire({ steal: true });
      await context.sleep(context.timing.slackMs / 4);
      assert.equal(first.settled(), undefined, 'a waiter entered beside the holder that stole');
      await stolen.release();
      const lease = await first.lease;
      assert.equal(second.settled(), undefined);
      await lease.release();
      await (await second.lease).release();
    },
  },
  {
    id: 'steal/contradicts-no-waiter',
    clause: '§17.2',
    title: 'a steal with another limit or mode than that of the waiters is refused, and ends no hold',
    ...needs(steal, fifo, permits),
    async run(context) {
      const name = context.name();
      const { locks } = await context.client({ ttlMs: context.livingTtlMs });
      const refused = (error: unknown): boolean => isLockError(error, 'LOCK_CONFLICT');
      const former = await locks.semaphore(name, 2).acquire({ weight: 2 });
      const waiter = await startWaitingFor(context, (each) => each.semaphore(name, 2), { waitMs: 60_000 });
      await assert.rejects(locks.semaphore(name, 1).acquire({ steal: true }), refused);
      await assert.rejects(locks.semaphore(name, 3).acquire({ steal: true }), refused);
      await assert.rejects(locks.lock(name).acquire({ steal: true }), refused);
      await former.renew();
      assert.equal(waiter.settled(), undefined, 'a steal that was refused ended a hold');
      const stolen = await locks.semaphore(name, 2).acquire({ steal: true, weight: 2 });
      await stolen.release();
      await (await waiter.lease).release();
      // Without waiters nothing is contradicted.
      await locks.semaphore(name, 2).acquire({ weight: 2 });
      await (await locks.semaphore(name, 3).acquire({ steal: true, weight: 3 })).release();
      await locks.semaphore(name, 2).acquire();
      await (await locks.lock(name).acquire({ steal: true })).release();
      // Nobody in the queue fits beside an exclusive hold, and it counts all the same.
      const alone = await locks.lock(name).acquire();
      const next = await startWaitingFor(context, (each) => each.lock(name), { waitMs: 60_000 });
      await assert.rejects(locks.semaphore(name, 2).acquire({ steal: true }), refused);
      await alone.release();
      await (await next.lease).release();
    },
  },
  {
    id: 'steal/stolen-before-it-was-reported',
    clause: '§17.1',
    title: 'a waiter whose hand-off is stolen before it hears of it keeps its position in the queue',
    ...needs(steal, fifo),
    async run(context) {
      const waitMs = 60_000;
      const [holder, successor] = [await context.client(), await context.client()];
      for (let round = 0; round < ROUNDS; round += 1) {
        const name = context.name();
        const held = await holder.locks.lock(name).acquire();
        const order: string[] = [];
        const enter = async (who: string, lease: Promise<Lease>): Promise<void> => {
          const entered = await lease;
          order.push(who);
          // The first waiter may have heard of its grant before the steal: then the steal ended its lease.
          await entered.release().catch((error: unknown) => {
            if (!isLockError(error, 'LOCK_LOST')) throw error;
          });
        };
        const entries: Promise<void>[] = [];
        for (const who of ['first', 'second', 'third']) {
          const { lease } = await startWaiting(context, name, { waitMs });
          entries.push(enter(who, lease));
        }
        const released = held.release().catch((error: unknown) => {
          // The steal may have come before the release.
          if (!isLockError(error, 'LOCK_LOST')) throw error;
        });
        const stolen = await successor.locks.lock(name).acquire({ steal: true, waitMs });
        await released;
        await context.sleep(context.timing.slackMs / 4);
        await stolen.release();
        await Promise.all(entries);
        assert.deepEqual(order, ['first', 'second', 'third']);
      }
    },
  },
  {
    id: 'steal/the-token-rises',
    clause: '§6.1',
    title: 'the token of a stolen hold is above that of the former holder, and the next token above it',
    ...needs(steal, fencing),
    async run(context) {
      const name = context.name();
      const { locks } = await context.client();
      const former = await (await context.client()).locks.lock(name).acquire();
      const stolen = await locks.lock(name).acquire({ steal: true });
      assert.ok((stolen.fencingToken ?? 0n) > (former.fencingToken ?? 0n));
      await stolen.release();
      const next = await locks.lock(name).acquire();
      assert.ok((next.fencingToken ?? 0n) > (stolen.fencingToken ?? 0n));
      await next.release();
    },
  },
  {
    id: 'steal/ends-every-share',
    clause: '§17.1',
    title: 'a writer that steals from readers is alone',
    ...needs(steal, shared),
    async run(context) {
      const name = context.name();
      const [one, two] = [await context.client(), await context.client()];
      await one.locks.readWriteLock(name).read.acquire();
      await two.locks.readWriteLock(name).read.acquire();
      const successor = await context.client();
      const stolen = await successor.locks.lock(name).acquire({ steal: true });
      assert.deepEqual(await holdersOf(successor.backend, name), [stolen.acquisitionId]);
      await stolen.release();
    },
  },
  {
    id: 'steal/repeated-it-is-one-steal',
    clause: '§2.1',
    title: 'a repeated steal holds once; a later renewal by the former holder is answered with lost',
    ...needs(steal),
    async run(context) {
      const name = context.name();
      const backend = await context.backend();
      const former = await grab(backend, name, 30_000);
      const request = { ...exclusiveRequest(name, 30_000), steal: true } as const;
      const first = await backend.attempt(request, false, openCall);
      const again = await backend.attempt(request, false, openCall);
      if (first.status !== 'granted' || again.status !== 'granted')
        assert.fail('an attempt that steals was not granted');
      assert.equal(again.grant.fencingToken, first.grant.fencingToken);
      const [renewalStatus] = await backend.renew([{ grant: former, ttlMs: 30_000 }], openCall);
      assert.deepEqual(renewalStatus, { status: 'lost', reason: 'taken-over' });
      assert.equal(await backend.release(former, openCall), 'not-held');
      assert.equal(await backend.release(again.grant, openCall), 'released');
      assert.deepEqual(await holdersOf(backend, name), []);
    },
  },
];
