import assert from 'node:assert/strict';
import type { BackendCapabilities } from '../../src/backend/types.ts';
import { type ConformanceCase, type Missing, noHook, without } from '../case.ts';
import type { Harness } from '../harness.ts';
import { needs, type Need, processes } from '../needs.ts';
import { exclusiveRequest, openCall } from '../raw.ts';
import { SafetyViolation } from '../safety-violation.ts';
import type { CaseContext } from '../case-context.ts';
import { granted, startWaiting } from '../waiter.ts';

function needsSession({ tenure }: BackendCapabilities): Missing | undefined {
  return tenure === 'session' ? undefined : without('a ttl, not a session, ends an abandoned hold');
}

function needsEndSession(capabilities: BackendCapabilities, harness: Harness): Missing | undefined {
  const missing = needsSession(capabilities);
  if (missing !== undefined) return missing;
  return harness.faults?.endSession === undefined ? noHook('faults.endSession') : undefined;
}

/** Asserts the absence of sessions: a grant names none. */
async function grantsHaveNoSession(context: CaseContext): Promise<void> {
  const backend = await context.backend();
  const attempt = await backend.attempt(exclusiveRequest(context.name(), 30_000), false, openCall);
  if (attempt.status !== 'granted') assert.fail('a free resource was not granted');
  assert.equal(attempt.grant.session, undefined, 'tenure is declared as a lease, and a grant has a session');
  await backend.release(attempt.grant, openCall);
}

const session: Need = { missing: needsSession, refused: grantsHaveNoSession };

async function endSession(
  context: CaseContext,
  backend: Parameters<NonNullable<NonNullable<Harness['faults']>['endSession']>>[0],
) {
  await context.harness.faults?.endSession?.(backend);
}

/** A process, its hold, and a waiter for that hold. */
async function heldByChild(context: CaseContext) {
  const name = context.name();
  const { slackMs, idleGapMs } = context.timing;
  const child = await context.child();
  const { id } = await child.acquire(name);
  const { validForMs } = await child.read(id);
  const withinMs = validForMs + idleGapMs + 3 * slackMs;
  const next = await startWaiting(context, name, { waitMs: 2 * withinMs });
  return { child, id, next, withinMs };
}

export const sessionCases: readonly ConformanceCase[] = [
  {
    id: 'session/end-loses-all-its-leases',
    clause: '§12.1',
    title: 'the end of a session ends all its leases at once, with reason session-lost',
    missing: needsEndSession,
    refused: grantsHaveNoSession,
    async run(context) {
      const { backend, locks } = await context.client();
      const leases = await Promise.all([1, 2, 3].map(() => locks.lock(context.name()).acquire()));
      const signals = leases.map(({ signal }) => signal);
      await endSession(context, backend);
      await context.until(
        'the signals of all leases abort',
        () => signals.every(({ aborted }) => aborted),
        context.timing.slackMs,
      );
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
    title: 'after the end of a session another client gets its locks, and its waiters block nobody',
    missing: needsEndSession,
    refused: grantsHaveNoSession,
    async run(context) {
      const name = context.name();
      const { backend, locks } = await context.client();
      const lease = await locks.lock(name).acquire();
      const { slackMs, idleGapMs } = context.timing;
      const { locks: others } = await context.client();
      const waiting = others.lock(name).acquire({ waitMs: 20 * slackMs + idleGapMs });
      await context.sleep(slackMs / 8);
      await endSession(context, backend);
      const next = await waiting;
      assert.notEqual(next.acquisitionId, lease.acquisitionId);
      // An operator has ended the session: the holder learns it by a message, and the next one may hold by then.
      await context.until('the former holder learns of its loss', () => lease.validForMs === 0, slackMs);
      assert.throws(() => lease.assertValid(), { code: 'LOCK_LOST', reason: 'session-lost' });
      next.assertValid();
      await next.release();
    },
  },
  {
    id: 'session/others-are-unaffected',
    clause: '§12.1',
    title: 'the end of one session does not end the leases of another',
    missing: needsEndSession,
    refused: grantsHaveNoSession,
    async run(context) {
      const [one, two] = [await context.client(), await context.client()];
      const lost = await one.locks.lock(context.name()).acquire();
      const kept = await two.locks.lock(context.name()).acquire();
      await endSession(context, one.backend);
      await context.until(
        'the signal of the lease of the ended session aborts',
        () => lost.signal.aborted,
        context.timing.slackMs,
      );
      await context.sleep(context.timing.slackMs / 4);
      kept.assertValid();
      assert.equal(kept.signal.aborted, false);
      assert.equal((await two.locks.inspect(kept.name)).holders[0]?.acquisitionId, kept.acquisitionId);
      await kept.release();
    },
  },
  {
    id: 'session/outlives-the-ttl',
    clause: '§12.1',
    title: 'a lease lives as long as its session: past its ttl, without renewals',
    missing: needsSession,
    refused: grantsHaveNoSession,
    async run(context) {
      const name = context.name();
      const { locks } = await context.client();
      const { ttlMs, slackMs } = context.timing;
      const lease = await locks.lock(name).acquire({ ttlMs, renewal: 'manual' });
      await context.sleep(2 * ttlMs + slackMs);
      lease.assertValid();
      assert.ok(lease.validForMs > 0);
      assert.equal(await (await context.client()).locks.lock(name).tryAcquire(), undefined);
      await lease.release();
    },
  },
  {
    id: 'session/stall-reports-the-loss',
    clause: '§1.3',
    title: 'after a stall longer than the session every property of a lease says lost at once',
    missing: needsSession,
    refused: grantsHaveNoSession,
    async run(context) {
      const child = await context.child();
      const { id } = await child.acquire(context.name());
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
    async run(context) {
      const { child, next, withinMs } = await heldByChild(context);
      await child.kill();
      const lease = await granted(context, next, withinMs);
      await lease.release();
    },
  },
  {
    id: 'session/frozen-holder-learns-the-loss',
    clause: '§1.3',
    title:
      'a process that stands still for longer than its session loses its lease, and learns it before it can act when it goes on',
    ...needs(session, processes),
    async run(context) {
      const { child, id, next, withinMs } = await heldByChild(context);
      child.freeze();
      const lease = await granted(context, next, withinMs);
      child.thaw();
      const reading = await child.read(id);
      if (reading.validForMs > 0 && lease.validForMs > 0)
        throw new SafetyViolation('two clients count the lock as theirs');
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
