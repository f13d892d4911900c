import type { Contention } from '../compare/burst.ts';
import {
  type Comparison,
  type ContenderResult,
  floorOf,
  overlapsOf,
  paired,
  typical,
} from '../compare/comparison.ts';
import { compareContended } from '../compare/contended.ts';
import { rateChart } from '../compare/tables.ts';
import { openTestbed } from '../conduct/testbed.ts';
import { cohortContenders } from '../contenders/cohorts.ts';
import { describeMachine, versionsOf } from '../measure/machine.ts';
import { Progress } from '../measure/progress.ts';
import { whole } from '../report/figures.ts';
import { reportHead, type ReportHead } from '../report/head.ts';
import type { Section } from '../report/section.ts';
import type { Target } from '../report/target.ts';
import { etcdStore } from '../stores/etcd.ts';
import { localStore } from '../stores/local.ts';
import { mysqlStore } from '../stores/mysql.ts';
import { postgresStore } from '../stores/postgres.ts';
import { redisStore } from '../stores/redis.ts';
import type { Store } from '../stores/store.ts';
import { runSuite, type Selection, type SettingsOptions } from './command.ts';
import { settingsFor, type StoreSettings } from './workload.ts';

/** The store of each library, and how often each of 32 waiters takes the lock in a burst: some seconds at most. */
const stores: Readonly<Record<string, { readonly store: Store; readonly turns: number }>> = {
  'redis-ioredis': { store: redisStore, turns: 300 },
  'postgres lease': { store: postgresStore, turns: 100 },
  mysql: { store: mysqlStore, turns: 50 },
  etcd: { store: etcdStore, turns: 20 },
  sqlite: { store: localStore, turns: 100 },
};
const BURST_LIMIT_MS = 10_000;
const WARM_UP_MS = 6_000;

const rows: readonly Omit<Contention, 'turns'>[] = [
  { id: 'waiters', title: '32 waiters of one process', processes: 1, waitersEach: 32 },
  { id: 'processes', title: '4 processes × 8 waiters', processes: 4, waitersEach: 8 },
];

interface CohortReport extends ReportHead {
  readonly suite: 'cohorts';
  readonly settings: StoreSettings;
  readonly comparisons: readonly Comparison[];
}

function settingsOf(options: SettingsOptions): StoreSettings {
  const settings = settingsFor(options);
  // In an empty section nothing hides code that is not compiled yet: it takes tens of thousands of hand-offs of each process.
  const warmUpBurstsMs = settings.quick ? settings.warmUpBurstsMs : WARM_UP_MS;
  return { ...settings, sectionMs: 0, turnsLimitMs: BURST_LIMIT_MS, warmUpBurstsMs };
}

/** `bench cohorts`: hand-offs with and without cohorts, with an empty critical section. Gives the exit code. */
export async function cohortSuite(args: readonly string[]): Promise<number> {
  return await runSuite<CohortReport>(
    {
      name: 'cohorts',
      rows: rows.map(({ id }) => id),
      contenders: async () => cohortContenders,
      measure: (options, selection, say) => measure(settingsOf(options), selection, say),
      sectionsOf: ({ comparisons }) => comparisons.map(tableOf),
      judge,
    },
    args,
  );
}

async function measure(
  settings: StoreSettings,
  selection: Selection,
  say: (text: string) => void,
): Promise<CohortReport> {
  const machine = describeMachine();
  const progress = new Progress(say);
  const versions: Record<string, string> = {};
  const measured = new Map<string, Comparison>();
  let placement = '';
  for (const [library, { store, turns }] of Object.entries(stores)) {
    const contenders = selection.contenders.filter(({ name }) => name.startsWith(`${library},`));
    if (contenders.length === 0) continue;
    await progress.part(library, async () => {
      await using testbed = await openTestbed(store.start);
      placement = testbed.placement;
      Object.assign(versions, testbed.server.versions, versionsOf(contenders.flatMap((one) => one.packages)));
      for (const row of rows.filter(({ id }) => selection.rows.has(id))) {
        progress.report(`  ${library}: ${row.title}`);
        const comparison = await compareContended(testbed, contenders, settings, { ...row, turns });
        const before = measured.get(row.id)?.contenders ?? [];
        measured.set(row.id, { ...comparison, contenders: [...before, ...comparison.contenders] });
      }
    });
  }
  return {
    ...reportHead('cohorts', machine, placement, versions),
    settings,
    failures: progress.failures,
    comparisons: [...measured.values()],
  };
}

function tableOf(comparison: Comparison): Section {
  const title = `${comparison.title}, empty critical section`;
  return {
    title,
    chart: { ...rateChart(comparison), title },
    table: {
      heading: ['', 'hand-offs/s', '× plain', 'wait p50 ms', 'p99 ms', 'p99 / p50', 'requests', 'overlaps'],
      lines: comparison.contenders.map((result) => [
        result.name,
        whole(typical(result, ({ perSecond }) => perSecond)),
        timesPlain(comparison, result)?.toFixed(1) ?? '',
        typical(result, ({ waitP50Ms }) => waitP50Ms).toFixed(2),
        (result.rounds.some(({ cut }) => cut) ? '≥ ' : '') +
          typical(result, ({ waitP99Ms }) => waitP99Ms).toFixed(2),
        spread(result).toFixed(2),
        result.counted.requests > 0 ? result.counted.perOperation.toFixed(2) : '',
        String(overlapsOf(result)),
      ]),
    },
    note: 'Requests are those of an acquisition and its release. All waiters ask again as soon as they have left.',
  };
}

function timesPlain(comparison: Comparison, result: ContenderResult): number | undefined {
  const plain = floorOf(comparison, result);
  return plain === undefined || plain === result
    ? undefined
    : paired(result, plain, (one, other) => one.perSecond / other.perSecond);
}

function spread(result: ContenderResult): number {
  return typical(result, ({ waitP99Ms, waitP50Ms }) => waitP99Ms / waitP50Ms);
}

function judge({ comparisons }: CohortReport): Target[] {
  return comparisons.flatMap((comparison) =>
    comparison.contenders.flatMap((result): Target[] => {
      const { id } = comparison;
      const overlaps = overlapsOf(result);
      const about = { row: id, contender: result.name };
      const safe = { ...about, asked: 'no overlap', measured: String(overlaps), reached: overlaps === 0 };
      const times = timesPlain(comparison, result);
      if (times === undefined) return [safe];
      const least = id === 'waiters' ? 20 : 5;
      const faster: Target = {
        ...about,
        asked: `${least} × the hand-offs without cohorts`,
        measured: times.toFixed(1),
        reached: times >= least,
      };
      if (id === 'waiters') return [safe, faster];
      const ratio = spread(result);
      return [
        safe,
        faster,
        { ...about, asked: 'p99 ≤ 1.5 × p50', measured: ratio.toFixed(2), reached: ratio <= 1.5 },
      ];
    }),
  );
}
