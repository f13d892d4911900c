import type { Contender } from '../contenders/contender.ts';
import type { Testbed } from '../conduct/testbed.ts';
import { machineNow } from '../measure/clock.ts';
import { type Hold, readHistory } from '../measure/history.ts';

/** How many waiters of how many processes want one lock, and how often. */
export interface Contention {
  readonly id: string;
  readonly title: string;
  readonly processes: number;
  readonly waitersEach: number;
  /** How many times each waiter takes the lock. */
  readonly turns: number;
  /** For a semaphore: the permits that the waiters take, in turn, and the limit. */
  readonly weights?: readonly number[];
  readonly capacity?: number;
}

/** One run of a contention, from the moment at which all ask. */
export interface Burst {
  readonly holds: readonly Hold[];
  /** The holds that were entered in time. */
  readonly served: number;
  /** In milliseconds; for waiters that were not served in time, how long they had waited until then. */
  readonly waits: readonly number[];
  readonly gaps: readonly number[];
  readonly overlaps: number;
  readonly elapsedMs: number;
  /** The time limit came before all were served. */
  readonly cut: boolean;
}

/** Time for a burst to be announced to all processes before it starts. */
const NOTICE_MS = 15;

let bursts = 0;

export async function runBurst(
  testbed: Testbed,
  contender: Contender,
  { id, processes, waitersEach, turns, weights, capacity }: Contention,
  sectionMs: number,
  limitMs: number,
): Promise<Burst> {
  const workers = await testbed.workersOf(contender, processes);
  bursts += 1;
  // Each burst has a lock of its own: a process that was ended may still hold that of an earlier burst.
  const name = `bench:${contender.name}:${id}:${bursts}`;
  const startAt = machineNow() + NOTICE_MS;
  const stopAt = startAt + limitMs;
  const task = {
    name,
    waiters: waitersEach,
    ...(weights && { weights }),
    ...{ turns, sectionMs, startAt, stopAt },
  };
  const results = await Promise.all(workers.map((worker) => worker.call.contend(task)));
  const holds = results.flatMap((result) => result.holds);
  const unservedSince = results.flatMap((result) => result.unservedSince);
  if (unservedSince.length > 0) await testbed.endWorkers(contender);
  const served = holds.filter(({ late }) => !late);
  const cut = served.length < processes * waitersEach * turns;
  const lastExit = served.reduce((last, { leftAt }) => Math.max(last, leftAt), startAt);
  return {
    holds,
    served: served.length,
    waits: [
      ...holds.map(({ askedAt, enteredAt }) => enteredAt - askedAt),
      ...unservedSince.map((askedAt) => stopAt - askedAt),
    ],
    ...readHistory(holds, capacity),
    // A burst that was cut short lasted until its limit: the time in which nobody was served counts too.
    elapsedMs: (cut ? Math.max(lastExit, stopAt) : lastExit) - startAt,
    cut,
  };
}
