import type { Contender } from '../contenders/contender.ts';
import type { Stage } from '../conduct/stage.ts';
import { machineNow } from '../measure/clock.ts';
import { type Hold, readHistory } from '../measure/history.ts';

/** Who wants one lock, and how often. */
export interface Contention {
  readonly id: string;
  readonly title: string;
  readonly processes: number;
  readonly waitersEach: number;
  /** How many times each waiter takes the lock. */
  readonly turns: number;
  /** Of a semaphore: how much the waiters take, in turn, and how much there is. */
  readonly weights?: readonly number[];
  readonly capacity?: number;
}

/** One run of a contention, from the moment at which all ask. */
export interface Burst {
  readonly holds: readonly Hold[];
  /** Those who entered in time. */
  readonly served: number;
  /** In milliseconds; of those who were not served in time, how long they had waited until then. */
  readonly waits: readonly number[];
  readonly gaps: readonly number[];
  readonly overlaps: number;
  readonly elapsedMs: number;
  /** The time limit came before all were served. */
  readonly cut: boolean;
}

/** Time for all processes to hear of a burst before it starts. */
const NOTICE_MS = 15;

let bursts = 0;

export async function runBurst(
  stage: Stage,
  contender: Contender,
  { id, processes, waitersEach, turns, weights, capacity }: Contention,
  sectionMs: number,
  limitMs: number,
): Promise<Burst> {
  const crew = await stage.crew(contender, processes);
  bursts += 1;
  // A lock of its own: one that was cut short may still be held by a process that is gone.
  const name = `bench:${contender.name}:${id}:${bursts}`;
  const startAt = machineNow() + NOTICE_MS;
  const stopAt = startAt + limitMs;
  const task = {
    name,
    waiters: waitersEach,
    ...(weights && { weights }),
    ...{ turns, sectionMs, startAt, stopAt },
  };
  const results = await Promise.all(crew.map((worker) => worker.call('contend', task)));
  const holds = results.flatMap((result) => result.holds);
  const unservedSince = results.flatMap((result) => result.unservedSince);
  if (unservedSince.length > 0) await stage.dismissCrew(contender);
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
    // Cut short, it lasted until its limit: that nobody was served in the rest of it counts too.
    elapsedMs: (cut ? Math.max(lastExit, stopAt) : lastExit) - startAt,
    cut,
  };
}
