import assert from 'node:assert/strict';
import { setImmediate as turn } from 'node:timers/promises';
import type { Grant, LockBackend } from '../../backend/types.ts';
import type { ConformanceCase } from '../case.ts';
import { assertExclusive, machineNow, type Stay } from '../history.ts';
import { leaseTenure, needs } from '../needs.ts';
import { exclusiveRequest, grab, holdersOf, openCall } from '../raw.ts';
import { SafetyViolation } from '../safety-violation.ts';
import type { Stage } from '../stage.ts';

/** Longer than a case takes: what is granted for so long does not end by itself. */
const HOLD_MS = 120_000;
const NAMES = 20;
const RIVALS = 6;

/** A hold that ran out is taken by one, however many see its end (docs/spec.md §11.1). */
export const exclusionAfterAnEndCases: readonly ConformanceCase[] = [
  {
    id: 'exclusion/one-wins-after-an-end',
    clause: '§11.1',
    title:
      'of many attempts made while a hold runs out one is granted, and those who wait for its end enter one at a time',
    ...needs(leaseTenure),
    async run(stage) {
      await Promise.all([attemptsAtTheEnd(stage), waitsForTheEnd(stage)]);
    },
  },
];

interface Won {
  readonly backend: LockBackend;
  readonly grant: Grant;
}

async function attemptsAtTheEnd(stage: Stage): Promise<void> {
  const { ttlMs, slackMs, idleGapMs } = stage.timing;
  const rivals = await Promise.all(Array.from({ length: RIVALS }, () => stage.backend()));
  const wins = new Map(Array.from({ length: NAMES }, () => [stage.name(), [] as Won[]]));
  let over = false;
  const contend = async (name: string, won: Won[]): Promise<void> => {
    await grab(rivals[0] as LockBackend, name, ttlMs);
    await stage.sleep(0.8 * ttlMs);
    while (won.length === 0 && !over) {
      await Promise.all(rivals.map((backend) => attemptOnce(stage, backend, name, won)));
      await stage.sleep(stage.random.between(3, 12));
    }
    // By now none may be granted any more.
    await Promise.all(rivals.map((backend) => attemptOnce(stage, backend, name, won)));
  };
  const contending = Promise.all([...wins].map(([name, won]) => contend(name, won)));
  const served = (): boolean => [...wins.values()].every((won) => won.length > 0);
  const inTime = stage.until('each name is granted again', served, 2 * ttlMs + idleGapMs + 10 * slackMs);
  await Promise.race([contending, inTime]).finally(() => {
    over = true;
  });
  await contending;
  for (const [name, won] of wins) {
    const [first, ...others] = won;
    if (first === undefined || others.length > 0) {
      throw new SafetyViolation(`${won.length} were granted ${name} at its end (seed ${stage.seed})`);
    }
    const { backend, grant } = first;
    assert.deepEqual(await holdersOf(backend, name), [grant.request.acquisitionId]);
    assert.equal(await backend.release(grant, openCall), 'released');
  }
}

async function attemptOnce(stage: Stage, backend: LockBackend, name: string, won: Won[]): Promise<void> {
  const alone = backend.capabilities.order === 'none';
  // Where no order is kept, a quorum may split its votes among those who come in step.
  if (alone) await stage.sleep(stage.random.between(0, 30));
  for (let turns = stage.random.between(0, 2); turns > 0; turns -= 1) await turn();
  const request = exclusiveRequest(name, HOLD_MS);
  const attempt = await backend.attempt(request, false, openCall);
  if (attempt.status === 'granted') won.push({ backend, grant: attempt.grant });
  else if (alone) await backend.abandon(request, openCall);
}

async function waitsForTheEnd(stage: Stage): Promise<void> {
  const holder = await stage.backend();
  const names = [stage.name(), stage.name(), stage.name(), stage.name(), stage.name()];
  const histories = new Map(names.map((name) => [name, [] as Stay[]]));
  await Promise.all(names.map((name) => grab(holder, name, stage.timing.ttlMs)));
  const waitAndLeave = async (who: string): Promise<void> => {
    const { locks } = await stage.client({ ttlMs: HOLD_MS, waitMs: HOLD_MS });
    await Promise.all(
      [...histories].map(async ([name, stays]) => {
        const lease = await locks.lock(name).acquire();
        const enteredAt = machineNow();
        await stage.sleep(stage.random.between(2, 10));
        stays.push({ who, enteredAt, leftAt: machineNow(), token: lease.fencingToken?.toString() });
        // Rejects where another took its place.
        await lease.release();
      }),
    );
  };
  await Promise.all(['a', 'b', 'c', 'd'].map(waitAndLeave));
  for (const stays of histories.values()) {
    assert.equal(stays.length, 4);
    assertExclusive(stays, stage.seed);
  }
}
