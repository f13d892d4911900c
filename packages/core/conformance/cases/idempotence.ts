import assert from 'node:assert/strict';
import type { Grant, LockBackend } from '../../src/backend/types.ts';
import type { ConformanceCase } from '../case.ts';
import { fifo, leaseTenure, needs } from '../needs.ts';
import { exclusiveRequest, grab, holdersOf, assertNotHeld, openCall } from '../raw.ts';
import type { CaseContext } from '../case-context.ts';

/** Cases of calls that reach a backend twice, late, or with an unknown id. */
export const idempotenceCases: readonly ConformanceCase[] = [
  {
    id: 'idempotence/repeated-attempt',
    clause: '§2.1',
    first: true,
    title: 'a repeated attempt gives the same grant and token, and no more time than the store has left',
    async run(context) {
      const name = context.name();
      const backend = await context.backend();
      const request = exclusiveRequest(name, 60_000);
      const first = await backend.attempt(request, false, openCall);
      assert.ok(first.status === 'granted', `the resource is free, and an attempt is ${first.status}`);
      await context.sleep(context.timing.ttlMs / 3);
      for (const enqueue of [false, true]) {
        const again = await backend.attempt(request, enqueue, openCall);
        assert.ok(again.status === 'granted', notRepeated(again.status));
        assert.equal(
          again.grant.fencingToken,
          first.grant.fencingToken,
          'repeated with the id that holds, an attempt gives another token: it was granted anew',
        );
        assert.equal(again.grant.request.acquisitionId, request.acquisitionId);
        const { holders } = await backend.inspect(name, openCall);
        const believes =
          again.grant.countedFrom + (again.grant.validForMs ?? request.ttlMs) - performance.now();
        // Where the store does not show what is left, a second client shows below that it is no less.
        const left = holders[0]?.expiresInMs ?? Number.POSITIVE_INFINITY;
        assert.ok(believes <= left, tooLong(believes - left));
      }
      assert.deepEqual(await holdersOf(backend, name), [request.acquisitionId]);
      assert.equal(await backend.release(first.grant, openCall), 'released');
      assert.deepEqual(await holdersOf(backend, name), []);
      if (backend.capabilities.tenure === 'lease') await grantsWhatIsLeft(context, backend);
    },
  },
  {
    id: 'idempotence/repeated-attempt-in-the-queue',
    clause: '§2.1',
    first: true,
    title: 'an attempt repeated while it waits keeps its position in the queue, and is there once',
    ...needs(fifo),
    async run(context) {
      const name = context.name();
      const [holder, backend] = [await context.backend(), await context.backend()];
      const held = await grab(holder, name, 60_000);
      const [early, late] = [exclusiveRequest(name, 60_000), exclusiveRequest(name, 60_000)];
      for (const request of [early, late, early, late, early]) {
        const { status } = await backend.attempt(request, true, openCall);
        assert.equal(status, 'contended', `the resource is held, and an attempt that enqueues is ${status}`);
      }
      assert.equal(await holder.release(held, openCall), 'released');
      for (const request of [early, late]) {
        let shown = '';
        await context.until(
          () => `the first in the queue is granted (${shown}: its entry is lost, or not served)`,
          async () => {
            const attempt = await backend.attempt(request, true, openCall);
            if (attempt.status === 'granted') return true;
            const { holders, waiters } = await backend.inspect(name, openCall);
            const [other] = holders;
            assert.ok(
              other === undefined || other.acquisitionId === request.acquisitionId,
              'another request was served before the first in the queue',
            );
            shown = `${holders.length} hold the resource and ${waiters.length} wait`;
            return false;
          },
          context.timing.idleGapMs + 3 * context.timing.slackMs,
        );
        if (request === early) {
          assert.equal((await backend.attempt(late, true, openCall)).status, 'contended');
        }
        await backend.abandon(request, openCall);
      }
      const lease = await (await context.client()).locks.lock(name).acquire();
      await lease.release();
    },
  },
  {
    id: 'idempotence/abandon-of-the-unknown',
    clause: '§2.2',
    first: true,
    title: 'an abandon of an unknown id does nothing, on a free resource and on a held one',
    async run(context) {
      const [free, taken] = [context.name(), context.name()];
      const backend = await context.backend();
      const held = await grab(backend, taken, 60_000);
      await backend.abandon(exclusiveRequest(free, 60_000), openCall);
      await backend.abandon(exclusiveRequest(taken, 60_000), openCall);
      assert.deepEqual(await holdersOf(backend, free), []);
      assert.deepEqual(await holdersOf(backend, taken), [held.request.acquisitionId]);
      const { locks } = await context.client();
      const lease = await locks.lock(free).tryAcquire();
      assert.ok(lease, 'an abandon took a free resource');
      await lease.release();
      assert.equal(await backend.release(held, openCall), 'released');
    },
  },
  {
    id: 'idempotence/abandon-frees-once',
    clause: '§2.2',
    first: true,
    title: 'an abandon of an id that holds frees the resource, and a second one does not free its successor',
    async run(context) {
      const backend = await context.backend();
      await assertNotHeld(async () => {
        const name = context.name();
        const held = await grab(backend, name, 60_000);
        await backend.abandon(held.request, openCall);
        assert.deepEqual(await holdersOf(backend, name), []);
        const successor = await grab(backend, name, 60_000);
        await backend.abandon(held.request, openCall);
        assert.deepEqual(await holdersOf(backend, name), [successor.request.acquisitionId]);
        const answer = await backend.release(held, openCall);
        assert.equal(await backend.release(successor, openCall), 'released');
        return answer;
      });
    },
  },
  {
    id: 'idempotence/late-abandon-of-the-expired',
    clause: '§2.2',
    title: 'an abandon that arrives after its lease ran out does not free the next holder',
    ...needs(leaseTenure),
    async run(context) {
      const name = context.name();
      const backend = await context.backend();
      const stale = await grab(backend, name, context.timing.ttlMs);
      const next = await (await context.client()).locks.lock(name).acquire();
      await backend.abandon(stale.request, openCall);
      assert.deepEqual(await holdersOf(backend, name), [next.acquisitionId]);
      await next.release();
    },
  },
  {
    id: 'idempotence/resent-calls-spare-others',
    clause: '§2.8',
    title: 'a release or an abandon that is sent three times in a row ends no lock that is taken meanwhile',
    async run(context) {
      const backend = await context.backend();
      const putBack = {
        release: (grant: Grant) => backend.release(grant, openCall),
        abandon: (grant: Grant) => backend.abandon(grant.request, openCall),
      };
      for (const way of ['release', 'abandon', 'release', 'release', 'release', 'release'] as const) {
        const grant = await grab(backend, context.name(), 60_000);
        const taken = await Promise.all(
          [0, 1, 2].map(async (laterMs) => {
            await context.sleep(laterMs);
            await putBack[way](grant);
            return await grab(backend, context.name(), 60_000);
          }),
        );
        for (const { request } of taken) {
          const holders = await holdersOf(backend, request.resource);
          assert.deepEqual(holders, [request.acquisitionId], `the ${way} of another grant ended this hold`);
        }
        for (const other of taken) assert.equal(await backend.release(other, openCall), 'released');
      }
    },
  },
];

function notRepeated(status: string): string {
  return (
    `An attempt repeated with the id that holds is ${status}: attempt is not idempotent. ` +
    'It must give the same grant again while the hold lasts (docs/spec.md §2.1).'
  );
}

function tooLong(byMs: number): string {
  return (
    `A repeated attempt reports ${Math.ceil(byMs)} ms more than the store keeps the hold: its grant needs validForMs,  ` +
    'the rest of the hold, counted from before this attempt was sent.'
  );
}

/** Checks that nobody else is granted before the end that a repeated attempt reports. */
async function grantsWhatIsLeft(context: CaseContext, backend: LockBackend): Promise<void> {
  const ttlMs = 2 * context.timing.ttlMs;
  const { locks } = await context.client({ waitMs: 30_000 });
  for (;;) {
    const name = context.name();
    const { request, countedFrom } = await grab(backend, name, ttlMs);
    await context.sleep(ttlMs / 3);
    const again = await backend.attempt(request, false, openCall);
    // After a pause of this process that outlasted the hold the repeated attempt shows nothing.
    if (performance.now() >= countedFrom + ttlMs) continue;
    assert.ok(again.status === 'granted', notRepeated(again.status));
    const endsAt = again.grant.countedFrom + (again.grant.validForMs ?? ttlMs);
    const next = await locks.lock(name).acquire();
    const earlyMs = endsAt - performance.now();
    assert.ok(earlyMs <= ttlMs * 0.01 + 2, tooLong(earlyMs));
    await next.release();
    return;
  }
}
