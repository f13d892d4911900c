import assert from 'node:assert/strict';
import type { Grant } from '../../src/backend/types.ts';
import type { ConformanceCase } from '../case.ts';
import { leaseTenure, needs } from '../needs.ts';
import { assertEndsByItself, exclusiveRequest, grab, holdersOf, assertNotHeld, openCall } from '../raw.ts';
import type { CaseContext } from '../case-context.ts';

/** Cases about who may end or extend a hold: its own acquisition, and nobody else. */
export const ownershipCases: readonly ConformanceCase[] = [
  {
    id: 'ownership/stale-holder-cannot-release',
    clause: '§3.1',
    title: 'a holder whose lease expired cannot release the hold of its successor',
    ...needs(leaseTenure),
    async run(context) {
      const backend = await context.backend();
      const { locks } = await context.client();
      await assertNotHeld(async () => {
        const name = context.name();
        const stale = await grab(backend, name, context.timing.ttlMs);
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
    title: 'a renewal of an expired lease reports the loss, and neither extends nor names the hold after it',
    ...needs(leaseTenure),
    async run(context) {
      await Promise.all([learnsItsLoss(context), movesNoEnd(context)]);
    },
  },
  {
    id: 'ownership/stale-lease-learns-nothing',
    clause: '§3.1',
    title: 'a lost lease stays lost and keeps its properties, whatever its successor does',
    ...needs(leaseTenure),
    async run(context) {
      const name = context.name();
      const [first, second] = [await context.client(), await context.client()];
      const stale = await first.locks.lock(name).acquire({ ttlMs: context.timing.ttlMs, renewal: 'manual' });
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
    async run(context) {
      const name = context.name();
      const backend = await context.backend();
      const held = await grab(backend, name, 60_000);
      const forged = (grant: Grant): Grant => ({
        ...grant,
        request: exclusiveRequest(grant.request.resource, 60_000),
      });
      await assertNotHeld(() => backend.release(forged(held), openCall));
      const [renewalStatus] = await backend.renew([{ grant: forged(held), ttlMs: 3_600_000 }], openCall);
      assert.equal(renewalStatus?.status, 'lost');
      const { holders } = await backend.inspect(name, openCall);
      assert.equal(holders[0]?.acquisitionId, held.request.acquisitionId);
      // Where the store does not show the end, a second client shows it below. A session's hold has no end of its own.
      assert.ok((holders[0]?.expiresInMs ?? 0) <= 60_000 + context.stepMs, 'a stranger renewed the hold');
      assert.equal(await backend.release(held, openCall), 'released');
      if (backend.capabilities.tenure !== 'lease') return;
      await assertEndsByItself(context, async (same, shortly) => {
        const ttlMs = 2 * context.timing.ttlMs;
        const short = await grab(same, shortly, ttlMs);
        await same.renew([{ grant: forged(short), ttlMs: 3_600_000 }], openCall);
        return performance.now() < short.countedFrom + ttlMs;
      });
    },
  },
  {
    id: 'ownership/stranger-cannot-abandon',
    clause: '§3.1',
    title: 'an abandon of one acquisition id leaves the hold of another alone',
    async run(context) {
      const name = context.name();
      const backend = await context.backend();
      const held = await grab(backend, name, 60_000);
      await backend.abandon(exclusiveRequest(name, 60_000), openCall);
      assert.deepEqual(await holdersOf(backend, name), [held.request.acquisitionId]);
      assert.equal(await backend.release(held, openCall), 'released');
    },
  },
  {
    id: 'ownership/second-release-frees-nobody',
    clause: '§3.1',
    title: 'a second release of a grant does not free its successor',
    async run(context) {
      const name = context.name();
      const backend = await context.backend();
      const held = await grab(backend, name, 60_000);
      assert.equal(await backend.release(held, openCall), 'released');
      // The answer may also be `unknown`: the store may take the first release for an earlier sending of the same call.
      assert.notEqual(await backend.release(held, openCall), 'released');
      const successor = await grab(await context.backend(), name, 60_000);
      assert.notEqual(await backend.release(held, openCall), 'released');
      assert.deepEqual(await holdersOf(backend, name), [successor.request.acquisitionId]);
      assert.equal(await backend.release(successor, openCall), 'released');
    },
  },
];

async function learnsItsLoss(context: CaseContext): Promise<void> {
  const name = context.name();
  const backend = await context.backend();
  const stale = await grab(backend, name, context.timing.ttlMs);
  const successor = await (await context.client()).locks.lock(name).acquire({ ttlMs: 60_000 });
  const [renewalStatus] = await backend.renew([{ grant: stale, ttlMs: 3_600_000 }], openCall);
  assert.equal(renewalStatus?.status, 'lost');
  const reported = JSON.stringify(renewalStatus, (_, value) =>
    typeof value === 'bigint' ? `${value}` : value,
  );
  assert.ok(!reported.includes(successor.acquisitionId), `the answer names the successor: ${reported}`);
  const { holders } = await backend.inspect(name, openCall);
  assert.equal(holders[0]?.acquisitionId, successor.acquisitionId);
  // Where the store does not show the end, a second client shows it.
  assert.ok(
    (holders[0]?.expiresInMs ?? 0) <= 60_000 + context.stepMs,
    'the predecessor renewed the hold of its successor',
  );
  await successor.release();
}

/** Checks that a renewal by an hour of an ended hold does not extend the hold of its successor. */
async function movesNoEnd(context: CaseContext): Promise<void> {
  const { ttlMs } = context.timing;
  const { locks } = await context.client({ ttlMs: 2 * ttlMs, renewal: 'manual' });
  await assertEndsByItself(context, async (backend, name) => {
    const stale = await grab(backend, name, ttlMs);
    const successor = await locks.lock(name).acquire();
    await backend.renew([{ grant: stale, ttlMs: 3_600_000 }], openCall);
    return successor.validForMs > 0;
  });
}
