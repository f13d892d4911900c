import type { SeededRandom } from '../kernel/seeded-random.ts';
import type { RecordClockPlan, RecordPlan } from '../record/record-plan.ts';

/** No answer is stale, and the servers do not fail. */
const SOUND = { stale: 0, failed: 0 } as const;

/** Wall clocks are up to 10 s apart, where nobody sets them, and a machine that slept counts some seconds less. */
const IDLE_MS = 20_000;

/**
 * Draws what a store of records is like.
 *
 * @param isTidy - nothing fails in the run but messages
 * @param setsClocks - whether somebody sets the clock of a process
 * @param chosen - what a theme has chosen
 */
export function drawRecordPlan(
  random: SeededRandom,
  isTidy: boolean,
  setsClocks: boolean,
  chosen: Partial<RecordPlan> = {},
): RecordPlan {
  const isSound = isTidy || random.chance(0.5);
  return {
    clock: random.chance(0.5) ? drawClock(random) : undefined,
    watches: random.chance(0.5),
    tellsWhom: random.fork(4).pick(['nothing', 'whom', 'record'] as const),
    vainPushes: random.pick([0, 0, 0.2]),
    lists: random.chance(0.5),
    conflictsTell: random.chance(0.5),
    versions: random.pick(['number', 'string', 'bigint', 'value'] as const),
    stale: random.chance(0.5) ? random.next() * 0.4 : 0,
    staleMs: random.pick([2, 20, 200, 1_000]),
    failed: random.chance(0.5) ? random.next() * 0.3 : 0,
    ...(isSound && SOUND),
    deletesIdleAfterMs: setsClocks ? Infinity : IDLE_MS,
    retries: random.pick([0, 0, 2]),
    endsAtAbort: random.chance(0.5),
    minPollMs: random.pick([2, 2, 10]),
    waiterTtlMs: random.pick([1_000, 3_000, 3_000]),
    ...chosen,
  };
}

function drawClock(random: SeededRandom): RecordClockPlan {
  return {
    stepMs: random.pick([1, 1_000]),
    skewMs: random.pick([0, 20, 500]),
    isInWrites: random.chance(0.5),
  };
}
