import assert from 'node:assert/strict';
import type { AcquireRequest, Grant, LockBackend } from '../../src/backend/types.ts';
import type { CaseContext } from '../case-context.ts';
import type { ConformanceCase } from '../case.ts';
import { cohorts, leaseTenure, needs, steal } from '../needs.ts';
import { EXCLUSIVE, grab, openCall, requestOf } from '../raw.ts';
import { SafetyViolation } from '../safety-violation.ts';

type End = 'its ttl' | 'a steal' | 'a forced release';

const HELD_MS = 120_000;

export const cohortEndCases: readonly ConformanceCase[] = [
  {
    id: 'cohort/nobody-follows-an-expired-lease',
    clause: '§18.4',
    title: 'after the end of a lease by its ttl the next waiter of its process has no turn with it',
    ...needs(cohorts, leaseTenure, steal),
    run: (context) => assertNobodyFollows(context, 'its ttl'),
  },
  {
    id: 'cohort/nobody-follows-a-stolen-lease',
    clause: '§18.6',
    title:
      'after a steal or a forced release that a renewal reported, the next waiter has no turn with the lease',
    ...needs(cohorts, steal),
    async run(context) {
      await assertNobodyFollows(context, 'a steal');
      if ((await context.backend()).capabilities.features.includes('force-release'))
        await assertNobodyFollows(context, 'a forced release');
    },
  },
];

/** Ends the lease of the first of two waiters, and asserts that its release lets the second one not in beside a new holder. */
async function assertNobodyFollows(context: CaseContext, end: End): Promise<void> {
  const { ttlMs, slackMs } = context.timing;
  const name = context.name(end);
  const [outside, cohort, other] = [
    await context.backend(),
    await context.backend(),
    await context.backend(),
  ];
  const leaseMs = end === 'its ttl' ? context.inSteps(ttlMs + 3 * slackMs) : HELD_MS;
  const held = await grab(outside, name, HELD_MS);
  const requests = [requestOf(name, EXCLUSIVE, leaseMs), requestOf(name, EXCLUSIVE, leaseMs)] as const;
  for (const request of requests)
    assert.equal((await cohort.attempt(request, true, openCall)).status, 'contended');
  // Behind the first waiter, and before the second one asks the store.
  const next = requestOf(name, EXCLUSIVE, HELD_MS);
  assert.equal((await other.attempt(next, true, openCall)).status, 'contended');
  const stop = new AbortController();
  const wait = (backend: LockBackend, request: AcquireRequest): Promise<Grant | undefined> =>
    granted(context, backend, request, stop.signal);
  const first = wait(cohort, requests[0]);
  let followed = false;
  const second = wait(cohort, requests[1]).then((grant) => void (followed = grant !== undefined));
  assert.equal(await outside.release(held, openCall), 'released');
  const grant = await first;
  assert.ok(grant, 'the first waiter was not granted');
  const thief = { ...requestOf(name, EXCLUSIVE, HELD_MS), steal: true } as const;
  if (end === 'a forced release') await other.forceRelease?.(name, undefined, openCall);
  if (end === 'a steal') assert.equal((await other.attempt(thief, false, openCall)).status, 'granted');
  else assert.ok(await wait(other, next), 'the next in the queue was not granted');
  if (end !== 'its ttl') {
    const [renewalStatus] = await cohort.renew([{ grant, ttlMs: leaseMs }], openCall);
    assert.equal(renewalStatus?.status, 'lost');
  }
  // The second waiter has heard of it, and waits again.
  await context.sleep(slackMs / 2);
  await cohort.release(grant, openCall);
  await context.sleep(slackMs);
  if (followed) throw new SafetyViolation(`After ${end} a waiter was let in beside the new holder.`);
  stop.abort();
  for (const request of requests) await cohort.abandon(request, openCall);
  for (const request of [thief, next]) await other.abandon(request, openCall);
  await second;
}

/** Waits for the turn of a request as core would, until it is stopped. */
async function granted(
  context: CaseContext,
  backend: LockBackend,
  request: AcquireRequest,
  signal: AbortSignal,
): Promise<Grant | undefined> {
  while (!signal.aborted) {
    const call = { ...openCall, deadline: performance.now() + context.timing.idleGapMs };
    const grant = await backend.awaitTurn?.(request, { ...call, signal });
    if (grant !== undefined) return grant;
    if (signal.aborted) return undefined;
    const attempt = await backend.attempt(request, true, openCall);
    if (attempt.status === 'granted') return attempt.grant;
    await context.sleep(2);
  }
  return undefined;
}
