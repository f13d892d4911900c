import assert from 'node:assert/strict';
import type { Grant, LockBackend } from '../../src/backend/types.ts';
import type { ConformanceCase } from '../case.ts';
import { leaseTenure, needs } from '../needs.ts';
import { EXCLUSIVE, openCall, requestOf } from '../raw.ts';
import { SafetyViolation } from '../safety-violation.ts';
import type { CaseContext } from '../case-context.ts';

/** How many iterations of the event loop after the call the process stands still: in one of them the reply is on its way. */
const TURNS = 8;

/** How a client counts a reply that arrived while its process stood still, however fast the store is. */
export const stalledClientCases: readonly ConformanceCase[] = [
  {
    id: 'expiry/stalled-client-counts-from-sending',
    clause: '§1.2',
    title:
      'the time that a reply waits for a stalled event loop is missing from the lease, which counts from before its request was sent',
    ...needs(leaseTenure),
    async run(context) {
      const [holder, witness] = [await context.backend(), await context.backend()];
      const grants = [];
      for (let turn = 0; turn < TURNS; turn += 1) grants.push(await grantedAfterStall(context, holder, turn));
      await Promise.all(grants.map((grant) => endsNotBefore(context, witness, grant)));
    },
  },
];

/** A grant whose reply was read `stallMs` late, if the reply was on its way in this turn. */
async function grantedAfterStall(context: CaseContext, backend: LockBackend, turn: number): Promise<Grant> {
  const ttlMs = context.inSteps(4 * stallOf(context) + context.timing.ttlMs);
  for (;;) {
    const request = requestOf(context.name(`turn ${turn}`), EXCLUSIVE, ttlMs);
    const startedAt = performance.now();
    const asking = backend.attempt(request, false, openCall);
    asking.catch(() => {});
    for (let passed = 0; passed < turn; passed += 1) await new Promise(setImmediate);
    standStill(stallOf(context));
    const attempt = await asking.catch((error: unknown) => {
      if (!backend.isRetryable(error)) throw error;
    });
    if (attempt === undefined) continue;
    if (attempt.status === 'granted') return attempt.grant;
    const tookMs = performance.now() - startedAt;
    assert.ok(tookMs > ttlMs / 2, `the resource is free, and an attempt answered ${attempt.status}`);
  }
}

/** The stall is much longer than the margin of a lease, and too short to count as a pause in concurrent cases. */
function stallOf({ timing }: CaseContext): number {
  return Math.min(60, timing.slackMs / 4);
}

/** Blocks the event loop without using the processor. */
function standStill(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

async function endsNotBefore(context: CaseContext, witness: LockBackend, grant: Grant): Promise<void> {
  const { request, countedFrom, validForMs = request.ttlMs } = grant;
  const { slackMs, idleGapMs } = context.timing;
  // Waits until the holder itself counts the lease as over.
  const end = countedFrom + validForMs * 0.99 - 2;
  const untilNear = end - 2 * stallOf(context) - performance.now();
  if (untilNear > 0) await context.sleep(untilNear);
  await context.until(
    'the next one is granted after the end',
    async () => {
      const next = requestOf(request.resource, EXCLUSIVE, 60_000);
      const { status } = await witness.attempt(next, false, openCall);
      const answeredAt = performance.now();
      await witness.abandon(next, openCall);
      if (status === 'granted' && answeredAt < end) {
        const early = Math.round(end - answeredAt);
        throw new SafetyViolation(
          `Another was granted ${early} ms before the holder's end: the lease counts from after its request was sent.`,
        );
      }
      return status === 'granted';
    },
    2 * stallOf(context) + idleGapMs + 3 * slackMs,
  );
}
