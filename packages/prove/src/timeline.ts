import type { Strike } from './faults.ts';
import type { RunRecord } from './judge/run-record.ts';
import { NAMES } from './names.ts';
import type { Timeline } from './proof.ts';

/** A page with more of them would be slow on a phone. */
const MOST_HOLDS = 4_000;
const SHOWN: readonly string[] = [NAMES.renewed, NAMES.queue];

/** The holds of two of the locks, and all faults. */
export function timelineOf(
  { holds }: RunRecord,
  strikes: readonly Strike[],
  lanes: ReadonlyMap<string, number>,
  prefix: string,
  startedAt: number,
): Timeline {
  const laneOf = (worker: string): number => lanes.get(worker) ?? 0;
  const since = (time: number): number => Math.round(time - startedAt);
  const shown = holds.flatMap(({ worker, resource, from, until, end }) => {
    const lock = resource.slice(prefix.length);
    if (!SHOWN.includes(lock)) return [];
    const last = until === Number.POSITIVE_INFINITY ? from : until;
    return [{ lane: laneOf(worker), lock, from: since(from), until: since(last), end }];
  });
  return {
    lanes: 1 + Math.max(0, ...lanes.values()),
    holds: shown.slice(0, MOST_HOLDS),
    strikes: strikes.map(({ worker, fault, from, until, detail }) => ({
      ...{ lane: laneOf(worker), fault, from: since(from), until: since(until), detail },
    })),
  };
}
