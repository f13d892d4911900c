import assert from 'node:assert/strict';
import type { Grant, LockBackend } from '../../backend/types.ts';
import type { ConformanceCase } from '../case.ts';
import { fifo, leaseTenure, needs } from '../needs.ts';
import { exclusiveRequest, grab, holdersOf, isNotHeld, openCall } from '../raw.ts';
import type { Stage } from '../stage.ts';

/** What a backend does with calls that it gets twice, late, or for an id that it does not know. */
export const idempotenceCases: readonly ConformanceCase[] = [
  {
    id: 'idempotence/repeated-attempt',
    clause: '§2.1',
    title:
      'an attempt repeated with its id gives the same grant and token, and no more time than the store has',
    async run(stage) {
      const name = stage.name();
      const backend = await stage.backend();
      const request = exclusiveRequest(name, 60_000);
      const first = await backend.attempt(request, false, openCall);
      assert.ok(first.status === 'granted');
      await stage.sleep(stage.timing.ttlMs / 3);
      for (const enqueue of [false, true]) {
        const again = await backend.attempt(request, enqueue, openCall);
        assert.ok(again.status === 'granted', `repeated, it is ${again.status}`);
        assert.equal(again.grant.fencingToken, first.grant.fencingToken);
        assert.equal(again.grant.request.acquisitionId, request.acquisitionId);
        const { holders } = await backend.inspect(name, openCall);
        const believes =
          again.grant.countedFrom + (again.grant.validForMs ?? request.ttlMs) - performance.now();
        // Where the store does not tell it, another shows it below.
        assert.ok(
          believes <= (holders[0]?.expiresInMs ?? Number.POSITIVE_INFINITY),
          'it grants more than is left',
        );
      }
      assert.deepEqual(await holdersOf(backend, name), [request.acquisitionId]);
      assert.equal(await backend.release(first.grant, openCall), 'released');
      assert.deepEqual(await holdersOf(backend, name), []);
      if (backend.capabilities.tenure === 'lease') await grantsWhatIsLeft(stage, backend);
    },
  },
  {
    id: 'idempotence/repeated-attempt-in-the-queue',
    clause: '§2.1',
    title: 'an attempt repeated while it waits keeps its place in the queue, and is there once',
    ...needs(fifo),
    async run(stage) {
      const name = stage.name();
      const [holder, backend] = [await stage.backend(), await stage.backend()];
      const held = await grab(holder, name, 60_000);
      const [early, late] = [exclusiveRequest(name, 60_000), exclusiveRequest(name, 60_000)];
      for (const request of [early, late, early, late, early]) {
        assert.equal((await backend.attempt(request, true, openCall)).status, 'contended');
      }
      assert.equal(await holder.release(held, openCall), 'released');
      for (const request of [early, late]) {
        await stage.until(
          'the first in the queue is granted',
          async () => {
            const attempt = await backend.attempt(request, true, openCall);
            if (attempt.status === 'granted') return true;
            const [other] = await holdersOf(backend, name);
            assert.ok(other === undefined || other === request.acquisitionId, 'another was served before it');
            return false;
          },
          stage.timing.idleGapMs + 3 * stage.timing.slackMs,
        );
        if (request === early) {
          assert.equal((await backend.attempt(late, true, openCall)).status, 'contended');
        }
        await backend.abandon(request, openCall);
      }
      const lease = await (await stage.client()).locks.lock(name).acquire();
      await lease.release();
    },
  },
  {
    id: 'idempotence/abandon-of-the-unknown',
    clause: '§2.2',
    title: 'to abandon an id that neither holds nor waits does nothing, on a free resource and on a held one',
    async run(stage) {
      const [free, taken] = [stage.name(), stage.name()];
      const backend = await stage.backend();
      const held = await grab(backend, taken, 60_000);
      await backend.abandon(exclusiveRequest(free, 60_000), openCall);
      await backend.abandon(exclusiveRequest(taken, 60_000), openCall);
      assert.deepEqual(await holdersOf(backend, free), []);
      assert.deepEqual(await holdersOf(backend, taken), [held.request.acquisitionId]);
      const { locks } = await stage.client();
      const lease = await locks.lock(free).tryAcquire();
      assert.ok(lease, 'an abandon took what was free');
      await lease.release();
      assert.equal(await backend.release(held, openCall), 'released');
    },
  },
  {
    id: 'idempotence/abandon-frees-once',
    clause: '§2.2',
    title: 'to abandon what holds frees it, and to abandon it again does not free its successor',
    async run(stage) {
      const backend = await stage.backend();
      await isNotHeld(async () => {
        const name = stage.name();
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
    async run(stage) {
      const name = stage.name();
      const backend = await stage.backend();
      const stale = await grab(backend, name, stage.timing.ttlMs);
      const next = await (await stage.client()).locks.lock(name).acquire();
      await backend.abandon(stale.request, openCall);
      assert.deepEqual(await holdersOf(backend, name), [next.acquisitionId]);
      await next.release();
    },
  },
  {
    id: 'idempotence/resent-calls-spare-others',
    clause: '§2.8',
    title:
      'a release or an abandon that is sent three times in a row spares the locks that are taken meanwhile',
    async run(stage) {
      const backend = await stage.backend();
      const giveBack = {
        release: (grant: Grant) => backend.release(grant, openCall),
        abandon: (grant: Grant) => backend.abandon(grant.request, openCall),
      };
      for (const way of ['release', 'abandon', 'release', 'release', 'release', 'release'] as const) {
        const grant = await grab(backend, stage.name(), 60_000);
        const taken = await Promise.all(
          [0, 1, 2].map(async (laterMs) => {
            await stage.sleep(laterMs);
            await giveBack[way](grant);
            return await grab(backend, stage.name(), 60_000);
          }),
        );
        for (const { request } of taken) {
          const holders = await holdersOf(backend, request.resource);
          assert.deepEqual(holders, [request.acquisitionId], `the ${way} of another ended it`);
        }
        for (const other of taken) assert.equal(await backend.release(other, openCall), 'released');
      }
    },
  },
];

/** Nobody else gets in before the end that a repeated attempt tells. */
async function grantsWhatIsLeft(stage: Stage, backend: LockBackend): Promise<void> {
  const ttlMs = 2 * stage.timing.ttlMs;
  const { locks } = await stage.client({ waitMs: 30_000 });
  for (;;) {
    const name = stage.name();
    const { request, countedFrom } = await grab(backend, name, ttlMs);
    await stage.sleep(ttlMs / 3);
    const again = await backend.attempt(request, false, openCall);
    // A pause of this process may outlast the hold: then it was granted anew, or not.
    if (performance.now() >= countedFrom + ttlMs) continue;
    assert.ok(again.status === 'granted', `repeated, it is ${again.status}`);
    const endsAt = again.grant.countedFrom + (again.grant.validForMs ?? ttlMs);
    const next = await locks.lock(name).acquire();
    const earlyMs = endsAt - performance.now();
    assert.ok(earlyMs <= ttlMs * 0.01 + 2, `another entered ${earlyMs} ms before the end that it tells`);
    await next.release();
    return;
  }
}
