import assert from 'node:assert/strict';
import type { AcquireRequest, LockBackend } from '../../backend/types.ts';
import type { ConformanceCase } from '../case.ts';
import { forceRelease, leaseTenure, needs } from '../needs.ts';
import { answered, grab, holdersOf, openCall } from '../raw.ts';
import { SafetyViolation } from '../safety-violation.ts';
import type { Stage } from '../stage.ts';

const HOLD_MS = 60_000;

/** An acquisition id gives its grant again while that lasts, and not after it (docs/spec.md §2.1). */
export const idempotencePastCases: readonly ConformanceCase[] = [
  {
    id: 'idempotence/no-grant-from-the-past',
    clause: '§2.1',
    title: 'an attempt repeated after its hold ran out and went to another is contended, and ends no hold',
    ...needs(leaseTenure),
    async run(stage) {
      await Promise.all(
        [false, true].map(async (enqueue) => {
          const name = stage.name();
          const backend = await stage.backend();
          const stale = await grab(backend, name, stage.timing.ttlMs);
          const { locks } = await stage.client({ ttlMs: HOLD_MS, waitMs: HOLD_MS });
          const successor = await locks.lock(name).acquire();
          await staysContended(stage, backend, stale.request, enqueue, successor.acquisitionId);
          await successor.renew();
          await successor.release();
          await isFree(stage, name);
        }),
      );
    },
  },
  {
    id: 'idempotence/no-grant-after-a-forced-end',
    clause: '§2.1',
    title:
      'an attempt repeated after its hold was ended by force and went to another is contended, and ends no hold',
    ...needs(forceRelease),
    async run(stage) {
      await Promise.all(
        [false, true].map(async (enqueue) => {
          const name = stage.name();
          const [backend, other] = [await stage.backend(), await stage.backend()];
          const ended = await grab(backend, name, HOLD_MS);
          await other.forceRelease?.(name, undefined, openCall);
          const successor = await grab(other, name, HOLD_MS);
          await staysContended(stage, backend, ended.request, enqueue, successor.request.acquisitionId);
          assert.equal(await other.release(successor, openCall), 'released');
          await isFree(stage, name);
        }),
      );
    },
  },
];

/** The request of a hold that is over, as a client sends it again that had no answer. */
async function staysContended(
  stage: Stage,
  backend: LockBackend,
  request: AcquireRequest,
  enqueue: boolean,
  successor: string,
): Promise<void> {
  for (const _ of [1, 2]) {
    const attempt = await answered(stage, backend, () => backend.attempt(request, enqueue, openCall));
    if (attempt.status === 'granted') {
      throw new SafetyViolation(`an attempt was granted what another holds (enqueue ${enqueue})`);
    }
    assert.equal(attempt.status, 'contended');
    assert.deepEqual(await holdersOf(backend, request.resource), [successor]);
  }
  await backend.abandon(request, openCall);
  assert.deepEqual(await holdersOf(backend, request.resource), [successor]);
}

/** Nobody holds it or waits for it. */
async function isFree(stage: Stage, name: string): Promise<void> {
  const backend = await stage.backend();
  const grant = await grab(backend, name, HOLD_MS);
  await backend.abandon(grant.request, openCall);
}
