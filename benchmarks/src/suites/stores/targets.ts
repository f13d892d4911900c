import {
  type Comparison,
  type ContenderResult,
  floorOf,
  overlapsOf,
  paired,
} from '../../compare/comparison.ts';
import type { Target } from '../../report/target.ts';
import { type Asked, askedOf } from './asked.ts';
import type { StoreReport } from './measure.ts';

/** Every figure that has a target, as far as its row was measured. */
export function judge(report: StoreReport): Target[] {
  const asked = askedOf[report.suite];
  return [
    ...report.comparisons.flatMap((comparison) =>
      comparison.contenders
        .filter(({ kind }) => kind === 'ours')
        .flatMap((result) => judgeResult(asked, comparison, result)),
    ),
    ...judgeTrips(asked, report),
    ...judgeWaiting(asked, report),
  ];
}

type MakeTarget = (asked: string, measured: string, reached: boolean) => Target;

function judgeResult(asked: Asked, comparison: Comparison, result: ContenderResult): Target[] {
  const target: MakeTarget = (wish, measured, reached) => {
    return { row: comparison.id, contender: result.name, asked: wish, measured, reached };
  };
  const floor = floorOf(comparison, result);
  return [
    ...(comparison.contended
      ? judgeContended(comparison, result, target)
      : judgeUncontended(asked, result, floor, target)),
  ];
}

function judgeUncontended(
  { exactly, leastRatio }: Asked,
  result: ContenderResult,
  floor: ContenderResult | undefined,
  target: MakeTarget,
): Target[] {
  const targets: Target[] = [];
  const { perOperation } = result.counted;
  const count = exactly?.[result.name];
  if (count !== undefined) {
    targets.push(target(`exactly ${count} statements`, perOperation.toFixed(3), perOperation === count));
  }
  const least = leastRatio?.[result.name];
  if (least !== undefined && floor !== undefined) {
    const ratio = paired(result, floor, (ours, raw) => ours.perSecond / raw.perSecond);
    targets.push(target(`≥ ${least} of ${floor.name}`, ratio.toFixed(3), ratio >= least));
  }
  return targets;
}

function judgeContended({ contenders }: Comparison, result: ContenderResult, target: MakeTarget): Target[] {
  const overlaps = overlapsOf(result);
  return [
    target('no overlap', String(overlaps), overlaps === 0),
    ...contenders
      .filter(({ kind }) => kind === 'peer')
      .map((peer) => {
        const speed = paired(result, peer, (ours, theirs) => ours.perSecond / theirs.perSecond);
        const wait = paired(result, peer, (ours, theirs) => theirs.waitP99Ms / ours.waitP99Ms);
        const measured = `× ${speed.toFixed(2)} hand-offs/s, p99 ÷ ${wait.toFixed(2)}`;
        return target(`ahead of ${peer.name}`, measured, speed > 1 && wait > 1);
      }),
  ];
}

function judgeTrips({ mostTrips }: Asked, { trips = [] }: StoreReport): Target[] {
  if (mostTrips === undefined) return [];
  return trips
    .filter(({ kind }) => kind === 'ours')
    .flatMap((ours) => {
      const floor = trips.find(({ name }) => name === ours.floor);
      return (['pair', 'handOff', 'handOffBetween'] as const).flatMap((what) => {
        const [own, least] = [ours[what], floor?.[what]];
        if (own === undefined || least === undefined || floor === undefined) return [];
        return {
          row: 'trips',
          contender: ours.name,
          asked: `${tripNames[what]}: ≤ ${mostTrips} × the round trips of ${floor.name}`,
          measured: `${own.toFixed(2)} to ${least.toFixed(2)}`,
          // A fifth of a round trip is the timer of the proxy.
          reached: own <= mostTrips * least + 0.2,
        };
      });
    });
}

const tripNames = {
  pair: 'acquire and release',
  handOff: 'hand-off',
  handOffBetween: 'hand-off to another process',
} as const;

function judgeWaiting(
  { mostWhileWaiting = Number.POSITIVE_INFINITY, mostWhileIdle = Number.POSITIVE_INFINITY }: Asked,
  { waiting = [] }: StoreReport,
): Target[] {
  return waiting.flatMap(({ contender, waiters, locks, requestsPerSecond }) => {
    const most = waiters === 0 ? mostWhileIdle : mostWhileWaiting;
    if (!Number.isFinite(most)) return [];
    const where =
      waiters === 0 ? 'nobody waits' : `${waiters} waiters, ${locks} lock${locks === 1 ? '' : 's'}`;
    return {
      row: 'waiting',
      contender,
      asked: `≤ ${most} statements/s (${where})`,
      measured: requestsPerSecond.toFixed(1),
      reached: requestsPerSecond <= most,
    };
  });
}
