import assert from 'node:assert/strict';
import type { AcquireRequest, LockBackend } from '../../src/backend/types.ts';
import type { ConformanceCase } from '../case.ts';
import { forceRelease, leaseTenure, needs } from '../needs.ts';
import { untilAnswered, grab, holdersOf, openCall } from '../raw.ts';
import { SafetyViolation } from '../safety-violation.ts';
import type { CaseContext } from '../case-context.ts';

const HOLD_MS = 60_000;

/** An attempt repeated with its id gives the same grant while that lasts, and not after its end (docs/spec.md §2.1). */
export const idempotencePastCases: readonly ConformanceCase[] = [
  {
    id: 'idempotence/no-grant-from-the-past',
    clause: '§2.1',
    title:
      'an attempt repeated after its hold expired and another was granted is contended, and ends no hold',
    ...needs(leaseTenure),
    async run(context) {
      await Promise.all(
        [false, true].map(async (enqueue) => {
          const name = context.name();
          const backend = await context.backend();
          const stale = await grab(backend, name, context.timing.ttlMs);
          const { locks } = await context.client({ ttlMs: HOLD_MS, waitMs: HOLD_MS });
          const successor = await locks.lock(name).acquire();
          await staysContended(context, backend, stale.request, enqueue, successor.acquisitionId);
          await successor.renew();
          await successor.release();
          await isFree(context, name);
        }),
      );
    },
  },
  {
    id: 'idempotence/no-grant-after-a-forced-end',
    clause: '§2.1',
    title:
      'an attempt repeated after its hold was ended by force and another client was granted is contended, and ends no hold',
    ...needs(forceRelease),
    async run(context) {
      await Promise.all(
        [false, true].map(async (enqueue) => {
          const name = context.name();
          const [backend, other] = [await context.backend(), await context.backend()];
          const ended = await grab(backend, name, HOLD_MS);
          await other.forceRelease?.(name, undefined, openCall);
          const successor = await grab(other, name, HOLD_MS);
          await staysContended(context, backend, ended.request, enqueue, successor.request.acquisitionId);
          assert.equal(await other.release(successor, openCall), 'released');
          await isFree(context, name);
        }),
      );
    },
  },
];

/** Sends the request of an ended hold again, as a client does that got no answer. */
async function staysContended(
  context: CaseContext,
  backend: LockBackend,
  request: AcquireRequest,
  enqueue: boolean,
  successor: string,
): Promise<void> {
  for (const _ of [1, 2]) {
    const attempt = await untilAnswered(context, backend, () => backend.attempt(request, enqueue, openCall));
    if (attempt.status === 'granted') {
      throw new SafetyViolation(
        `an attempt was granted a resource that another client holds (enqueue ${enqueue})`,
      );
    }
    assert.equal(attempt.status, 'contended');
    assert.deepEqual(await holdersOf(backend, request.resource), [successor]);
  }
  await backend.abandon(request, openCall);
  assert.deepEqual(await holdersOf(backend, request.resource), [successor]);
}

/** Checks that nobody holds the resource or waits for it. */
async function isFree(context: CaseContext, name: string): Promise<void> {
  const backend = await context.backend();
  const grant = await grab(backend, name, HOLD_MS);
  await backend.abandon(grant.request, openCall);
}
