import { type Comparison, type ContenderResult, floorOf, paired, typical } from '../compare/comparison.ts';
import { comparisonSection, contendedColumns, rateChart } from '../compare/tables.ts';
import type { TripsResult } from '../compare/trips.ts';
import { openTestbed } from '../conduct/testbed.ts';
import { PERMITS, QUORUM, TOGETHER } from '../contenders/kinds.ts';
import type { Section, Target } from '../report/report.ts';
import { type Column, tableOf } from '../report/table.ts';
import { startRedisServers } from '../stores/redis.ts';
import { contendedRow, loopRow, tripsRow } from './rows.ts';
import type { StoreSuite } from './stores.ts';
import { judgeOurs, type MakeTarget, noOverlap, speedOver, targetOf } from './targets.ts';

const READERS = 64;
const semaphore = { turns: 2, capacity: PERMITS } as const;
/** Whose round trips are counted, through networks of how many milliseconds each way. */
const latenciesOf: Readonly<Record<string, readonly number[]>> = { all: [10], quorum: [10, 1] };

/** `bench kinds`. */
export const kindsSuite: StoreSuite = {
  name: 'kinds',
  open: () => openTestbed(() => startRedisServers(QUORUM)),
  // A row of each id is in `rows` of its contenders.
  rows: [
    loopRow({
      id: 'readers',
      title: `${READERS} readers of one name, against ${READERS} exclusive locks of distinct names`,
      lanes: READERS,
    }),
    loopRow({ id: 'all', title: `All of ${TOGETHER} locks, again and again`, lanes: 1 }),
    loopRow({
      id: 'quorum',
      title: `Quorum of ${QUORUM} servers, against one: one lock again and again`,
      lanes: 1,
    }),
    contendedRow({
      id: 'semaphore',
      title: `Semaphore of ${PERMITS}: 64 waiters of one process, each twice`,
      processes: 1,
      waitersEach: 64,
      ...semaphore,
    }),
    contendedRow({
      id: 'weights',
      title: `Semaphore of ${PERMITS}: 4 processes × 16 waiters, each twice, with weights 1, 2, 1, 3`,
      processes: 4,
      waitersEach: 16,
      weights: [1, 2, 1, 3],
      ...semaphore,
    }),
    tripsRow(({ rows = [] }, forMs) =>
      [...new Set(rows.flatMap((row) => latenciesOf[row] ?? []))].map((latencyMs) => {
        return { contended: false, forMs, latencyMs };
      }),
    ),
  ],
  sectionOf: (comparison) => (comparison.contended ? grantsSection(comparison) : loopSection(comparison)),
  judge: ({ comparisons, trips = [] }) => [
    ...judgeOurs(comparisons, judgeResult),
    ...trips.flatMap((result) => judgeTrips(result, trips)),
  ],
};

const notes: Readonly<Record<string, string>> = {
  all: '`exclusive` is one lock: what one of the five costs.',
  quorum: 'Requests and server times are of the first of the three servers, and all three share one core.',
};

function loopSection(comparison: Comparison): Section {
  const note = notes[comparison.id];
  return { ...comparisonSection(comparison), ...(note !== undefined && { note }) };
}

/** Of a semaphore there are grants, and no gap from one holder to the next. */
function grantsSection(comparison: Comparison): Section {
  const gaps = ['gap ms', 'gap/PING', 'gap/rested', '× poll'];
  const columns = contendedColumns(comparison)
    .filter((column) => column !== false && !gaps.includes(column[0]))
    .map((column) => column && renamed(column));
  const pingOf = (result: ContenderResult): string =>
    (1000 * typical(result, ({ pingMs = Number.NaN }) => pingMs)).toFixed(0);
  return {
    title: comparison.title,
    table: tableOf(comparison.contenders, [...columns, ['p50 of a PING, µs', pingOf]]),
    chart: { ...rateChart(comparison), unit: 'grants/s' },
  };
}

function renamed<T>([heading, cell]: Column<T>): Column<T> {
  return [heading === 'hand-offs/s' ? 'grants/s' : heading, cell];
}

/** There is no fifth of a trip: that is the proxy's timer. */
const SLACK = 0.2;

function judgeTrips(
  { name, kind, floor, pair, pairMs, latencyMs }: TripsResult,
  all: readonly TripsResult[],
): Target[] {
  const target = targetOf('trips', name);
  if (kind !== 'ours') return [];
  if (name.startsWith('all of')) {
    return [target('≤ 2 round trips', pair.toFixed(2), pair <= 2 + SLACK)];
  }
  const one = all.find((other) => other.name === floor && other.latencyMs === latencyMs);
  if (!name.startsWith('quorum') || one === undefined) return [];
  const times = pairMs / one.pairMs;
  const asked = `through a network of ${latencyMs} ms: ≤ 1.3 × the time of ${floor}`;
  return [target(asked, `× ${times.toFixed(3)}`, times <= 1.3)];
}

function judgeResult(comparison: Comparison, result: ContenderResult, target: MakeTarget): Target[] {
  if (comparison.contended) {
    const peers = comparison.contenders.filter(({ kind }) => kind === 'peer');
    return [
      noOverlap(result, target, 'never more than the permits'),
      ...peers.map((peer) => {
        const speed = speedOver(result, peer);
        return target(`ahead of ${peer.name}`, `× ${speed.toFixed(2)} grants/s`, speed > 1);
      }),
    ];
  }
  const floor = floorOf(comparison, result);
  // What the others are compared to.
  if (floor === undefined || floor === result) return [];
  const speed = speedOver(result, floor);
  switch (comparison.id) {
    case 'readers':
      return [target(`≥ 0.8 × ${floor.name}`, `× ${speed.toFixed(3)}`, speed >= 0.8)];
    case 'all':
      return [target(`ahead of ${floor.name}`, `× ${speed.toFixed(2)}`, speed > 1)];
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
