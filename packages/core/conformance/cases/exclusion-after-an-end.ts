import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import type { Grant, LockBackend } from '../../src/backend/types.ts';
import type { ConformanceCase } from '../case.ts';
import { assertExclusive, enter, type CriticalSection } from '../critical-section.ts';
import { leaseTenure, needs } from '../needs.ts';
import { exclusiveRequest, grab, holdersOf, openCall } from '../raw.ts';
import { SafetyViolation } from '../safety-violation.ts';
import type { CaseContext } from '../case-context.ts';

/** The ttl of a hold that must not expire during the case. */
const HOLD_MS = 120_000;
const NAMES = 20;
const RIVALS = 6;

/** Only one client takes a hold that ran out, however many see its end (docs/spec.md §11.1). */
export const exclusionAfterAnEndCases: readonly ConformanceCase[] = [
  {
    id: 'exclusion/one-wins-after-an-end',
    clause: '§11.1',
    title: 'of many attempts made while a hold runs out one is granted, and the waiters enter one at a time',
    ...needs(leaseTenure),
    async run(context) {
      await Promise.all([attemptsAtTheEnd(context), waitsForTheEnd(context)]);
    },
  },
];

interface Won {
  readonly backend: LockBackend;
  readonly grant: Grant;
}

async function attemptsAtTheEnd(context: CaseContext): Promise<void> {
  const { ttlMs, slackMs, idleGapMs } = context.timing;
  const rivals = await Promise.all(Array.from({ length: RIVALS }, () => context.backend()));
  const wins = new Map(Array.from({ length: NAMES }, () => [context.name(), [] as Won[]]));
  let over = false;
  const contend = async (name: string, won: Won[]): Promise<void> => {
    await grab(rivals[0] as LockBackend, name, ttlMs);
    await context.sleep(0.8 * ttlMs);
    while (won.length === 0 && !over) {
      await Promise.all(rivals.map((backend) => attemptOnce(context, backend, name, won)));
      await context.sleep(context.random.between(3, 12));
    }
    // The name is held by now: none of these attempts may be granted.
    await Promise.all(rivals.map((backend) => attemptOnce(context, backend, name, won)));
  };
  const contending = Promise.all([...wins].map(([name, won]) => contend(name, won)));
  const served = (): boolean => [...wins.values()].every((won) => won.length > 0);
  const inTime = context.until('each name is granted again', served, 2 * ttlMs + idleGapMs + 10 * slackMs);
  await Promise.race([contending, inTime]).finally(() => {
    over = true;
  });
  await contending;
  for (const [name, won] of wins) {
    const [first, ...others] = won;
    if (first === undefined || others.length > 0) {
      throw new SafetyViolation(`${won.length} were granted ${name} at its end (seed ${context.seed})`);
    }
    const { backend, grant } = first;
    assert.deepEqual(await holdersOf(backend, name), [grant.request.acquisitionId]);
    assert.equal(await backend.release(grant, openCall), 'released');
  }
}

async function attemptOnce(
  context: CaseContext,
  backend: LockBackend,
  name: string,
  won: Won[],
): Promise<void> {
  const alone = backend.capabilities.order === 'none';
  // Where no order is kept, a quorum may split its votes between clients that come at the same time.
  if (alone) await context.sleep(context.random.between(0, 30));
  for (let turns = context.random.between(0, 2); turns > 0; turns -= 1) await turn();
  const request = exclusiveRequest(name, HOLD_MS);
  const attempt = await backend.attempt(request, false, openCall);
  if (attempt.status === 'granted') won.push({ backend, grant: attempt.grant });
  else if (alone) await backend.abandon(request, openCall);
}

async function waitsForTheEnd(context: CaseContext): Promise<void> {
  const holder = await context.backend();
  const names = [context.name(), context.name(), context.name(), context.name(), context.name()];
  const histories = new Map(names.map((name) => [name, [] as CriticalSection[]]));
  await Promise.all(names.map((name) => grab(holder, name, context.timing.ttlMs)));
  const waitAndLeave = async (who: string): Promise<void> => {
    const { locks } = await context.client({ ttlMs: HOLD_MS, waitMs: HOLD_MS });
    await Promise.all(
      [...histories].map(async ([name, sections]) => {
        const lease = await locks.lock(name).acquire();
        // The renewal rejects where another client took the hold.
        sections.push(await enter(lease, who, () => context.sleep(context.random.between(2, 10))));
      }),
    );
  };
  await Promise.all(['a', 'b', 'c', 'd'].map(waitAndLeave));
  for (const sections of histories.values()) {
    assert.equal(sections.length, 4);
    assertExclusive(sections, context.seed);
  }
}
