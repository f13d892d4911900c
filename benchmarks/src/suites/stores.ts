import { type Comparison, type ContenderResult, floorOf } from '../compare/comparison.ts';
import type { TripsResult } from '../compare/trips.ts';
import type { WaitingResult } from '../compare/waiting.ts';
import { runSuite } from '../command.ts';
import { openTestbed, type Testbed } from '../conduct/testbed.ts';
import { contendersOf } from '../contenders/all.ts';
import type { StoreId } from '../contenders/contender.ts';
import type { ReportHead } from '../report/head.ts';
import type { Section, Target } from '../report/report.ts';
import type { Store } from '../stores/store.ts';
import {
  contendedRow,
  type Figures,
  killRow,
  loopRow,
  measureRows,
  type Row,
  sectionsOf,
  tripsRow,
  waitingRow,
} from './rows.ts';
import { type Settings, settingsFor, type SettingsOptions } from './settings.ts';
import { aheadOfPeers, judgeOurs, type MakeTarget, noOverlap, speedOver, targetOf } from './targets.ts';

export interface StoreReport extends ReportHead, Figures {
  /** How operations were counted, where the page says so. */
  readonly counting?: string;
  readonly settings: Settings;
}

/** A suite of rows on one server, or on several that are opened together. */
export interface StoreSuite {
  readonly name: StoreId;
  readonly rows: readonly Row[];
  readonly counting?: string;
  open(): Promise<Testbed>;
  /** @defaultValue those of all suites */
  settings?(options: SettingsOptions): Settings;
  /** @defaultValue the section of a comparison in all suites */
  sectionOf?(comparison: Comparison): Section;
  judge(report: StoreReport): Target[];
}

/** Gives the exit code. */
export async function runStoreSuite(suite: StoreSuite, args: readonly string[]): Promise<number> {
  const { name, rows, counting, settings = settingsFor } = suite;
  return await runSuite<StoreReport>(
    {
      name,
      rows: rows.map(({ id }) => id),
      contenders: () => contendersOf(name),
      async measure(options, wanted, run) {
        const { contenders } = wanted;
        const figures = await run.on(suite.open, contenders, async (testbed) => {
          const chosen = rows.filter(({ id }) => wanted.rows.has(id));
          const setup = { testbed, settings: settings(options), contenders, progress: run.progress };
          return await measureRows(chosen, setup);
        });
        return run.report(name, {
          ...(counting !== undefined && { counting }),
          settings: settings(options),
          ...figures,
        });
      },
      sectionsOf: (report) => sectionsOf(report, report.counting, suite.sectionOf),
      judge: suite.judge,
    },
    args,
  );
}

/** The same workload for every backend: one lock again and again, and 32 waiters for one lock at once. */
export const workload: readonly Row[] = [
  loopRow({ id: 'sequential', title: 'Sequential: one lock again and again', lanes: 1 }),
  contendedRow({
    id: 'waiters',
    title: '32 waiters of one process',
    processes: 1,
    waitersEach: 32,
    turns: 1,
  }),
  contendedRow({ id: 'processes', title: '4 processes × 8 waiters', processes: 4, waitersEach: 8, turns: 1 }),
];

/** So long that no lease is renewed meanwhile. */
export const HELD_MS = 180_000;

const rows: readonly Row[] = [
  ...workload,
  tripsRow(({ kind }, forMs) => (kind === 'peer' ? [] : [{ contended: true, forMs }])),
  waitingRow([
    // A lock is held, and nobody waits.
    { waiters: 0, locks: 1, ttlMs: HELD_MS },
    { waiters: 32, locks: 1, ttlMs: HELD_MS },
    { waiters: 1_000, locks: 1, ttlMs: HELD_MS },
    { waiters: 1_000, locks: 1_000, ttlMs: HELD_MS },
  ]),
  killRow,
];

/** The targets of a store. */
interface Asked {
  /** Operations of an uncontended acquire and release. */
  readonly exactly?: Readonly<Record<string, number>>;
  /** Pairs a second, as a part of the floor's. */
  readonly leastRatio?: Readonly<Record<string, number>>;
  /** Round trips, as a multiple of those of the minimal recipe by hand: uncontended and per hand-off. */
  readonly mostTrips?: number;
  /** How many requests two processes, one that waits and one that holds, may send in a second. */
  readonly mostWhileWaiting?: number;
  /** The same without a waiter. */
  readonly mostWhileIdle?: number;
}

const askedOf: Readonly<Record<string, Asked>> = {
  postgres: {
    exactly: { '@locks/postgres lease': 2, '@locks/postgres lease, postgres.js': 2 },
    leastRatio: {
      '@locks/postgres lease': 0.85,
      '@locks/postgres advisory': 0.9,
      '@locks/postgres lease, postgres.js': 0.9,
      '@locks/postgres advisory, postgres.js': 0.9,
    },
    mostWhileWaiting: 2,
    mostWhileIdle: 1,
  },
  mysql: { mostWhileWaiting: 2, mostWhileIdle: 1 },
  zookeeper: { mostTrips: 1.1 },
  etcd: { mostTrips: 1.1 },
};

/** `bench postgres`, `mysql`, `zookeeper`, `etcd`. */
export function suiteOf(store: Store): StoreSuite {
  const { id, counting } = store;
  const asked = askedOf[id] ?? {};
  return {
    name: id,
    rows,
    counting,
    open: () => openTestbed(store.start),
    judge: ({ comparisons, trips = [], waiting = [] }) => [
      ...judgeOurs(comparisons, (comparison, result, target) =>
        comparison.contended
          ? [noOverlap(result, target), ...aheadOfPeers(comparison, result, target)]
          : judgeUncontended(asked, result, floorOf(comparison, result), target),
      ),
      ...judgeTrips(asked, trips),
      ...judgeWaiting(asked, waiting),
    ],
  };
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
    const ratio = speedOver(result, floor);
    targets.push(target(`≥ ${least} of ${floor.name}`, ratio.toFixed(3), ratio >= least));
  }
  return targets;
}

const tripNames = {
  pair: 'acquire and release',
  handOff: 'hand-off',
  handOffBetween: 'hand-off to another process',
} as const;

function judgeTrips({ mostTrips }: Asked, trips: readonly TripsResult[]): Target[] {
  if (mostTrips === undefined) return [];
  return trips
    .filter(({ kind }) => kind === 'ours')
    .flatMap((ours) => {
      const floor = trips.find(({ name }) => name === ours.floor);
      return (['pair', 'handOff', 'handOffBetween'] as const).flatMap((what) => {
        const [own, least] = [ours[what], floor?.[what]];
        if (own === undefined || least === undefined || floor === undefined) return [];
        return targetOf('trips', ours.name)(
          `${tripNames[what]}: ≤ ${mostTrips} × the round trips of ${floor.name}`,
          `${own.toFixed(2)} to ${least.toFixed(2)}`,
          // A fifth of a round trip is the timer of the proxy.
          own <= mostTrips * least + 0.2,
        );
      });
    });
}

function judgeWaiting(
  { mostWhileWaiting, mostWhileIdle }: Asked,
  waiting: readonly WaitingResult[],
): Target[] {
  return waiting.flatMap(({ contender, waiters, locks, requestsPerSecond }) => {
    const most = waiters === 0 ? mostWhileIdle : mostWhileWaiting;
    if (most === undefined) return [];
    const where =
      waiters === 0 ? 'nobody waits' : `${waiters} waiters, ${locks} lock${locks === 1 ? '' : 's'}`;
    return targetOf('waiting', contender)(
      `≤ ${most} statements/s (${where})`,
      requestsPerSecond.toFixed(1),
      requestsPerSecond <= most,
    );
  });
}
