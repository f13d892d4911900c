import {
  type Comparison,
  type ContenderResult,
  floorOf,
  overlapsOf,
  paired,
} from '../../compare/comparison.ts';
import type { TripsResult } from '../../compare/trips.ts';
import type { Target } from '../../report/target.ts';
import type { KindsReport } from './measure.ts';

/** Every figure that has a target, as far as its row was measured. */
export function judge({ comparisons, trips = [] }: KindsReport): Target[] {
  return [
    ...comparisons.flatMap((comparison) =>
      comparison.contenders
        .filter(({ kind }) => kind === 'ours')
        .flatMap((result) => judgeResult(comparison, result)),
    ),
    ...trips.flatMap((result) => judgeTrips(result, trips)),
  ];
}

/** There is no fifth of a trip: that is the proxy's timer. */
const SLACK = 0.2;

function judgeTrips(result: TripsResult, all: readonly TripsResult[]): Target[] {
  const { name, kind, floor, pair, pairMs, latencyMs } = result;
  const target = (asked: string, measured: string, reached: boolean): Target => {
    return { row: 'trips', contender: name, asked, measured, reached };
  };
  if (kind !== 'ours') return [];
  if (name.startsWith('all of')) {
    return [target('≤ 2 round trips', pair.toFixed(2), pair <= 2 + SLACK)];
  }
  const one = all.find((other) => other.name === floor && other.latencyMs === latencyMs);
  if (!name.startsWith('quorum') || one === undefined) return [];
  const times = pairMs / one.pairMs;
  return [
    target(
      `through a network of ${latencyMs} ms: ≤ 1.3 × the time of ${floor}`,
      `× ${times.toFixed(3)}`,
      times <= 1.3,
    ),
  ];
}

function judgeResult(comparison: Comparison, result: ContenderResult): Target[] {
  const target = (asked: string, measured: string, reached: boolean): Target => {
    return { row: comparison.id, contender: result.name, asked, measured, reached };
  };
  if (comparison.contended) {
    const overlaps = overlapsOf(result);
    const peers = comparison.contenders.filter(({ kind }) => kind === 'peer');
    return [
      target('never more than the permits', String(overlaps), overlaps === 0),
      ...peers.map((peer) => {
        const speed = paired(result, peer, (ours, theirs) => ours.perSecond / theirs.perSecond);
        return target(`ahead of ${peer.name}`, `× ${speed.toFixed(2)} grants/s`, speed > 1);
      }),
    ];
  }
  const floor = floorOf(comparison, result);
  // What the others are compared to.
  if (floor === undefined || floor === result) return [];
  const speed = paired(result, floor, (ours, raw) => ours.perSecond / raw.perSecond);
  switch (comparison.id) {
    case 'readers':
      return [target(`≥ 0.8 × ${floor.name}`, `× ${speed.toFixed(3)}`, speed >= 0.8)];
    case 'all': {
      return [target(`ahead of ${floor.name}`, `× ${speed.toFixed(2)}`, speed > 1)];
    }
    case 'quorum': {
      const time = 1 / speed;
      const wait = paired(result, floor, (ours, one) => ours.waitP50Ms / one.waitP50Ms);
      const measured = `× ${time.toFixed(3)} (p50 of acquire × ${wait.toFixed(3)})`;
      return [target(`≤ 1.3 × the time of ${floor.name}`, measured, time <= 1.3)];
    }
    default:
      return [];
  }
}
