import assert from 'node:assert/strict';
import type { ConformanceCase } from '../case.ts';
import { isLockError } from '../../errors.ts';
import { fencing, fifo, needs, shared, steal } from '../needs.ts';
import { exclusiveRequest, grab, holdersOf, openCall } from '../raw.ts';
import { startWaiting } from '../waiter.ts';

export const stealCases: readonly ConformanceCase[] = [
  {
    id: 'steal/takes-it-at-once',
    clause: '§17.1',
    title: 'a thief holds at once, and the robbed one is told with the reason taken-over',
    ...needs(steal),
    async run(stage) {
      const name = stage.name();
      const { ttlMs, slackMs } = stage.timing;
      const [holder, thief] = [await stage.client({ ttlMs: stage.livingTtlMs }), await stage.client()];
      const robbed = await holder.locks.lock(name).acquire();
      const { signal } = robbed;
      const stolen = await thief.locks.lock(name).acquire({ steal: true, waitMs: stage.busyMs });
      assert.deepEqual(await holdersOf(thief.backend, name), [stolen.acquisitionId]);
      await stage.until('the robbed one is told', () => signal.aborted, ttlMs + 8 * slackMs);
      assert.ok(isLockError(signal.reason, 'LOCK_LOST'));
      assert.equal(signal.reason.reason, 'taken-over');
      await assert.rejects(robbed.release(), (error) => isLockError(error, 'LOCK_LOST'));
      assert.deepEqual(
        await holdersOf(thief.backend, name),
        [stolen.acquisitionId],
        'the robbed freed the thief',
      );
      await stolen.renew();
      await stolen.release();
    },
  },
  {
    id: 'steal/the-queue-stays-behind',
    clause: '§17.1',
    title: 'those who wait keep their order behind the thief',
    ...needs(steal, fifo),
    async run(stage) {
      const name = stage.name();
      const waitMs = 60_000;
      await (await stage.client({ renewal: 'manual', ttlMs: 60_000 })).locks.lock(name).acquire();
      const [first, second] = [
        await startWaiting(stage, name, { waitMs }),
        await startWaiting(stage, name, { waitMs }),
      ];
      const stolen = await (await stage.client()).locks.lock(name).acquire({ steal: true });
      await stage.sleep(stage.timing.slackMs / 4);
      assert.equal(first.settled(), undefined, 'a waiter entered beside the thief');
      await stolen.release();
      const lease = await first.lease;
      assert.equal(second.settled(), undefined);
      await lease.release();
      await (await second.lease).release();
    },
  },
  {
    id: 'steal/the-token-rises',
    clause: '§6.1',
    title: 'the token of a thief is above that of the robbed, and the next above the thief',
    ...needs(steal, fencing),
    async run(stage) {
      const name = stage.name();
      const { locks } = await stage.client();
      const robbed = await (await stage.client()).locks.lock(name).acquire();
      const stolen = await locks.lock(name).acquire({ steal: true });
      assert.ok((stolen.fencingToken ?? 0n) > (robbed.fencingToken ?? 0n));
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
    async run(stage) {
      const name = stage.name();
      const [one, two] = [await stage.client(), await stage.client()];
      await one.locks.readWriteLock(name).read.acquire();
      await two.locks.readWriteLock(name).read.acquire();
      const thief = await stage.client();
      const stolen = await thief.locks.lock(name).acquire({ steal: true });
      assert.deepEqual(await holdersOf(thief.backend, name), [stolen.acquisitionId]);
      await stolen.release();
    },
  },
  {
    id: 'steal/repeated-it-is-one-theft',
    clause: '§2.1',
    title: 'a theft repeated with its id holds once; a stale renewal of the robbed is lost',
    ...needs(steal),
    async run(stage) {
      const name = stage.name();
      const backend = await stage.backend();
      const robbed = await grab(backend, name, 30_000);
      const request = { ...exclusiveRequest(name, 30_000), steal: true } as const;
      const first = await backend.attempt(request, false, openCall);
      const again = await backend.attempt(request, false, openCall);
      if (first.status !== 'granted' || again.status !== 'granted') assert.fail('a thief was not granted');
      assert.equal(again.grant.fencingToken, first.grant.fencingToken);
      const [standing] = await backend.renew([{ grant: robbed, ttlMs: 30_000 }], openCall);
      assert.deepEqual(standing, { status: 'lost', reason: 'taken-over' });
      assert.equal(await backend.release(robbed, openCall), 'not-held');
      assert.equal(await backend.release(again.grant, openCall), 'released');
      assert.deepEqual(await holdersOf(backend, name), []);
    },
  },
];
