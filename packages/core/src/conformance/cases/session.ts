import assert from 'node:assert/strict';
import type { BackendCapabilities } from '../../backend/types.ts';
import { type ConformanceCase, type Missing, noHook, without } from '../case.ts';
import type { Harness } from '../harness.ts';
import { needs, type Need, processes } from '../needs.ts';
import { exclusiveRequest, openCall } from '../raw.ts';
import { SafetyViolation } from '../safety-violation.ts';
import type { Stage } from '../stage.ts';
import { startWaiting, type Waiter } from '../waiter.ts';

function needsSession({ tenure }: BackendCapabilities): Missing | undefined {
  return tenure === 'session' ? undefined : without('a ttl, not a session, ends an abandoned hold');
}

function needsEndSession(capabilities: BackendCapabilities, harness: Harness): Missing | undefined {
  const missing = needsSession(capabilities);
  if (missing !== undefined) return missing;
  return harness.faults?.endSession === undefined ? noHook('faults.endSession') : undefined;
}

/** The absence of sessions: a grant names none. */
async function grantsHaveNoSession(stage: Stage): Promise<void> {
  const backend = await stage.backend();
  const attempt = await backend.attempt(exclusiveRequest(stage.name(), 30_000), false, openCall);
  if (attempt.status !== 'granted') assert.fail('a free resource was not granted');
  assert.equal(attempt.grant.session, undefined, 'tenure is declared as a lease, and a grant has a session');
  await backend.release(attempt.grant, openCall);
}

const session: Need = { missing: needsSession, refused: grantsHaveNoSession };

async function endSession(
  stage: Stage,
  backend: Parameters<NonNullable<NonNullable<Harness['faults']>['endSession']>>[0],
) {
  await stage.harness.faults?.endSession?.(backend);
}

/** A process that holds, what it holds, and somebody who waits for it. */
async function heldByChild(stage: Stage) {
  const name = stage.name();
  const { slackMs, idleGapMs } = stage.timing;
  const child = await stage.child();
  const { id } = await child.acquire(name);
  const { validForMs } = await child.read(id);
  const withinMs = validForMs + idleGapMs + 3 * slackMs;
  const next = await startWaiting(stage, name, { waitMs: 2 * withinMs });
  return { child, id, next, withinMs };
}

/** The next one enters once the session of a process that no longer moves has ended. */
async function nextEnters(stage: Stage, next: Waiter, withinMs: number) {
  await stage.until('the next one enters', () => next.settled() !== undefined, withinMs);
  return await next.lease;
}

export const sessionCases: readonly ConformanceCase[] = [
  {
    id: 'session/end-loses-all-its-leases',
    clause: '§12.1',
    title: 'the end of a session ends all its leases at once, told with reason session-lost',
    missing: needsEndSession,
    refused: grantsHaveNoSession,
    async run(stage) {
      const { backend, locks } = await stage.client();
      const leases = await Promise.all([1, 2, 3].map(() => locks.lock(stage.name()).acquire()));
      const signals = leases.map(({ signal }) => signal);
      await endSession(stage, backend);
      await stage.until('all are told', () => signals.every(({ aborted }) => aborted), stage.timing.slackMs);
      const lost = { code: 'LOCK_LOST', reason: 'session-lost' };
      for (const lease of leases) {
        assert.throws(() => lease.assertValid(), lost);
        assert.equal(lease.validForMs, 0);
        await assert.rejects(lease.release(), lost);
      }
    },
  },
  {
    id: 'session/end-frees-its-resources',
    clause: '§12.1',
    title:
      'after the end of a session another client gets what it held, and a waiter of it is out of the way',
    missing: needsEndSession,
    refused: grantsHaveNoSession,
    async run(stage) {
      const name = stage.name();
      const { backend, locks } = await stage.client();
      const lease = await locks.lock(name).acquire();
      const { slackMs, idleGapMs } = stage.timing;
      const { locks: others } = await stage.client();
      const waiting = others.lock(name).acquire({ waitMs: 20 * slackMs + idleGapMs });
      await stage.sleep(slackMs / 8);
      await endSession(stage, backend);
      const next = await waiting;
      assert.notEqual(next.acquisitionId, lease.acquisitionId);
      assert.throws(
        () => lease.assertValid(),
        { code: 'LOCK_LOST', reason: 'session-lost' },
        'two hold it, as far as they know',
      );
      next.assertValid();
      await next.release();
    },
  },
  {
    id: 'session/others-are-unaffected',
    clause: '§12.1',
    title: 'the end of one session does nothing to the leases of another',
    missing: needsEndSession,
    refused: grantsHaveNoSession,
    async run(stage) {
      const [one, two] = [await stage.client(), await stage.client()];
      const lost = await one.locks.lock(stage.name()).acquire();
      const kept = await two.locks.lock(stage.name()).acquire();
      await endSession(stage, one.backend);
      await stage.until('the one is told', () => lost.signal.aborted, stage.timing.slackMs);
      await stage.sleep(stage.timing.slackMs / 4);
      kept.assertValid();
      assert.equal(kept.signal.aborted, false);
      assert.equal((await two.locks.inspect(kept.name)).holders[0]?.acquisitionId, kept.acquisitionId);
      await kept.release();
    },
  },
  {
    id: 'session/outlives-the-ttl',
    clause: '§12.1',
    title: 'a lease lives as long as its session: past its ttl, with nobody renewing it',
    missing: needsSession,
    refused: grantsHaveNoSession,
    async run(stage) {
      const name = stage.name();
      const { locks } = await stage.client();
      const { ttlMs, slackMs } = stage.timing;
      const lease = await locks.lock(name).acquire({ ttlMs, renewal: 'manual' });
      await stage.sleep(2 * ttlMs + slackMs);
      lease.assertValid();
      assert.ok(lease.validForMs > 0);
      assert.equal(await (await stage.client()).locks.lock(name).tryAcquire(), undefined);
      await lease.release();
    },
  },
  {
    id: 'session/stall-tells-the-loss',
    clause: '§1.3',
    title: 'after a stall longer than the session, whatever is read from a lease says lost at once',
    missing: needsSession,
    refused: grantsHaveNoSession,
    async run(stage) {
      const child = await stage.child();
      const { id } = await child.acquire(stage.name());
      const { validForMs } = await child.read(id);
      assert.ok(validForMs > 0 && Number.isFinite(validForMs), `valid for ${validForMs} ms`);
      const reading = await child.readAfterBlock(id, validForMs + 20);
      assert.deepEqual(
        [reading.validForMs, reading.assertion, reading.aborted, reading.reason],
        [0, 'LOCK_LOST', true, 'session-lost'],
      );
    },
  },
  {
    id: 'session/killed-holder-frees-in-time',
    clause: '§7.7',
    title: 'after kill -9 of the process that holds, the next one enters within the session and the idle gap',
    ...needs(session, processes),
    async run(stage) {
      const { child, next, withinMs } = await heldByChild(stage);
      await child.kill();
      const lease = await nextEnters(stage, next, withinMs);
      await lease.release();
    },
  },
  {
    id: 'session/frozen-holder-is-told',
    clause: '§1.3',
    title:
      'a process that stands still for longer than its session is passed by, and told before it can do anything when it goes on',
    ...needs(session, processes),
    async run(stage) {
      const { child, id, next, withinMs } = await heldByChild(stage);
      child.freeze();
      const lease = await nextEnters(stage, next, withinMs);
      child.thaw();
      const reading = await child.read(id);
      if (reading.validForMs > 0 && lease.validForMs > 0)
        throw new SafetyViolation('two hold it, as far as they know');
      assert.deepEqual(
        [reading.validForMs, reading.assertion, reading.aborted, reading.reason],
        [0, 'LOCK_LOST', true, 'session-lost'],
      );
      await assert.rejects(child.release(id), { code: 'LOCK_LOST' });
      lease.assertValid();
      const { holders } = await next.locks.inspect(lease.name);
      assert.deepEqual(
        holders.map(({ acquisitionId }) => acquisitionId),
        [lease.acquisitionId],
      );
      await lease.release();
    },
  },
];
