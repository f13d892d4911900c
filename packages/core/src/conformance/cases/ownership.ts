import assert from 'node:assert/strict';
import type { Grant } from '../../backend/types.ts';
import type { ConformanceCase } from '../case.ts';
import { leaseTenure, needs } from '../needs.ts';
import { endsByItself, exclusiveRequest, grab, holdersOf, isNotHeld, openCall } from '../raw.ts';
import type { Stage } from '../stage.ts';

/** Who may end or move a hold: its own acquisition, and nobody else. */
export const ownershipCases: readonly ConformanceCase[] = [
  {
    id: 'ownership/stale-holder-cannot-release',
    clause: '§3.1',
    title: 'a holder whose lease expired and was taken by another cannot release it',
    ...needs(leaseTenure),
    async run(stage) {
      const backend = await stage.backend();
      const { locks } = await stage.client();
      await isNotHeld(async () => {
        const name = stage.name();
        const stale = await grab(backend, name, stage.timing.ttlMs);
        const successor = await locks.lock(name).acquire();
        const answer = await backend.release(stale, openCall);
        assert.deepEqual(await holdersOf(backend, name), [successor.acquisitionId]);
        await successor.release();
        return answer;
      });
    },
  },
  {
    id: 'ownership/stale-holder-cannot-renew',
    clause: '§3.1',
    title:
      'a renewal of a lease that was taken by another is told the loss, and neither moves the other nor names it',
    ...needs(leaseTenure),
    async run(stage) {
      await Promise.all([learnsItsLoss(stage), movesNoEnd(stage)]);
    },
  },
  {
    id: 'ownership/stale-lease-learns-nothing',
    clause: '§3.1',
    title: 'a lost lease stays lost and its own, whatever its successor does',
    ...needs(leaseTenure),
    async run(stage) {
      const name = stage.name();
      const [first, second] = [await stage.client(), await stage.client()];
      const stale = await first.locks.lock(name).acquire({ ttlMs: stage.timing.ttlMs, renewal: 'manual' });
      const { acquisitionId, fencingToken } = stale;
      const successor = await second.locks.lock(name).acquire();
      assert.equal(stale.validForMs, 0);
      assert.equal(stale.acquisitionId, acquisitionId);
      assert.equal(stale.fencingToken, fencingToken);
      for (const ask of [() => stale.renew(), () => stale.release()]) {
        await assert.rejects(ask, (error: Error & { code?: string }) => {
          assert.equal(error.code, 'LOCK_LOST');
          assert.ok(!error.message.includes(successor.acquisitionId));
          return true;
        });
      }
      successor.assertValid();
      assert.deepEqual(await holdersOf(second.backend, name), [successor.acquisitionId]);
      await successor.release();
    },
  },
  {
    id: 'ownership/stranger-cannot-release-or-renew',
    clause: '§3.1',
    title:
      "an acquisition id that does not hold can neither release nor renew, not even with the holder's token",
    async run(stage) {
      const name = stage.name();
      const backend = await stage.backend();
      const held = await grab(backend, name, 60_000);
      const forged = (grant: Grant): Grant => ({
        ...grant,
        request: exclusiveRequest(grant.request.resource, 60_000),
      });
      await isNotHeld(() => backend.release(forged(held), openCall));
      const [standing] = await backend.renew([{ grant: forged(held), ttlMs: 3_600_000 }], openCall);
      assert.equal(standing?.status, 'lost');
      const { holders } = await backend.inspect(name, openCall);
      assert.equal(holders[0]?.acquisitionId, held.request.acquisitionId);
      // Where the store does not tell it, another shows it below; what a session ends has no end to be moved.
      assert.ok((holders[0]?.expiresInMs ?? 0) <= 60_000, 'the holder was renewed by a stranger');
      assert.equal(await backend.release(held, openCall), 'released');
      if (backend.capabilities.tenure !== 'lease') return;
      await endsByItself(stage, async (same, shortly) => {
        const ttlMs = 2 * stage.timing.ttlMs;
        const short = await grab(same, shortly, ttlMs);
        await same.renew([{ grant: forged(short), ttlMs: 3_600_000 }], openCall);
        return performance.now() < short.countedFrom + ttlMs;
      });
    },
  },
  {
    id: 'ownership/stranger-cannot-abandon',
    clause: '§3.1',
    title: 'to abandon one acquisition id leaves the hold of another alone',
    async run(stage) {
      const name = stage.name();
      const backend = await stage.backend();
      const held = await grab(backend, name, 60_000);
      await backend.abandon(exclusiveRequest(name, 60_000), openCall);
      assert.deepEqual(await holdersOf(backend, name), [held.request.acquisitionId]);
      assert.equal(await backend.release(held, openCall), 'released');
    },
  },
  {
    id: 'ownership/second-release-frees-nobody',
    clause: '§3.1',
    title: 'a grant released twice does not free the one who holds by then',
    async run(stage) {
      const name = stage.name();
      const backend = await stage.backend();
      const held = await grab(backend, name, 60_000);
      assert.equal(await backend.release(held, openCall), 'released');
      // Also `unknown`: the first release was an earlier sending of the same call.
      assert.notEqual(await backend.release(held, openCall), 'released');
      const successor = await grab(await stage.backend(), name, 60_000);
      assert.notEqual(await backend.release(held, openCall), 'released');
      assert.deepEqual(await holdersOf(backend, name), [successor.request.acquisitionId]);
      assert.equal(await backend.release(successor, openCall), 'released');
    },
  },
];

async function learnsItsLoss(stage: Stage): Promise<void> {
  const name = stage.name();
  const backend = await stage.backend();
  const stale = await grab(backend, name, stage.timing.ttlMs);
  const successor = await (await stage.client()).locks.lock(name).acquire({ ttlMs: 60_000 });
  const [standing] = await backend.renew([{ grant: stale, ttlMs: 3_600_000 }], openCall);
  assert.equal(standing?.status, 'lost');
  const told = JSON.stringify(standing, (_, value) => (typeof value === 'bigint' ? `${value}` : value));
  assert.ok(!told.includes(successor.acquisitionId), `it was told of its successor: ${told}`);
  const { holders } = await backend.inspect(name, openCall);
  assert.equal(holders[0]?.acquisitionId, successor.acquisitionId);
  // Where the store does not tell it, another shows it.
  assert.ok((holders[0]?.expiresInMs ?? 0) <= 60_000, 'the successor was renewed by its predecessor');
  await successor.release();
}

/** A predecessor renews by an hour, and its successor ends when it would have. */
async function movesNoEnd(stage: Stage): Promise<void> {
  const { ttlMs } = stage.timing;
  const { locks } = await stage.client({ ttlMs: 2 * ttlMs, renewal: 'manual' });
  await endsByItself(stage, async (backend, name) => {
    const stale = await grab(backend, name, ttlMs);
    const successor = await locks.lock(name).acquire();
    await backend.renew([{ grant: stale, ttlMs: 3_600_000 }], openCall);
    return successor.validForMs > 0;
  });
}
