import type { Contention } from '../compare/burst.ts';
import {
  type Comparison,
  type ContenderResult,
  floorOf,
  overlapsOf,
  typical,
} from '../compare/comparison.ts';
import { compareContended } from '../compare/contended.ts';
import { atLeast, rateChart, waitSpread } from '../compare/tables.ts';
import { runSuite } from '../command.ts';
import { openTestbed } from '../conduct/testbed.ts';
import { cohortContenders } from '../contenders/cohorts.ts';
import { whole } from '../report/figures.ts';
import type { ReportHead } from '../report/head.ts';
import type { Section } from '../report/report.ts';
import { tableOf } from '../report/table.ts';
import { etcdStore } from '../stores/etcd.ts';
import { localStore } from '../stores/local.ts';
import { mysqlStore } from '../stores/mysql.ts';
import { postgresStore } from '../stores/postgres.ts';
import { redisStore } from '../stores/redis.ts';
import type { Store } from '../stores/store.ts';
import { type Settings, settingsFor, type SettingsOptions } from './settings.ts';
import { judgeOurs, noOverlap, speedOver } from './targets.ts';

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
  readonly settings: Settings;
  readonly comparisons: readonly Comparison[];
}

function settingsOf(options: SettingsOptions): Settings {
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
      async measure(options, selection, run) {
        const settings = settingsOf(options);
        const measured = new Map<string, Comparison>();
        for (const [library, { store, turns }] of Object.entries(stores)) {
          const contenders = selection.contenders.filter(({ name }) => name.startsWith(`${library},`));
          if (contenders.length === 0) continue;
          const open = () => openTestbed(store.start);
          const comparisons = await run.progress.part(library, () =>
            run.on(open, contenders, async (testbed) => {
              const ofStore: Comparison[] = [];
              for (const row of rows.filter(({ id }) => selection.rows.has(id))) {
                run.progress.report(`  ${library}: ${row.title}`);
                ofStore.push(await compareContended(testbed, contenders, settings, { ...row, turns }));
              }
              return ofStore;
            }),
          );
          for (const comparison of comparisons ?? []) {
            const before = measured.get(comparison.id)?.contenders ?? [];
            measured.set(comparison.id, { ...comparison, contenders: [...before, ...comparison.contenders] });
          }
        }
        return run.report('cohorts', { settings, comparisons: [...measured.values()] });
      },
      sectionsOf: ({ comparisons }) => comparisons.map(sectionOf),
      judge: ({ comparisons }) =>
        judgeOurs(comparisons, (comparison, result, target) => {
          const safe = noOverlap(result, target);
          const times = timesPlain(comparison, result);
          if (times === undefined) return [safe];
          const isOneProcess = comparison.id === 'waiters';
          const least = isOneProcess ? 20 : 5;
          const asked = `${least} × the hand-offs without cohorts`;
          const faster = target(asked, times.toFixed(1), times >= least);
          if (isOneProcess) return [safe, faster];
          const ratio = waitSpread(result);
          return [safe, faster, target('p99 ≤ 1.5 × p50', ratio.toFixed(2), ratio <= 1.5)];
        }),
    },
    args,
  );
}

function sectionOf(comparison: Comparison): Section {
  const title = `${comparison.title}, empty critical section`;
  return {
    title,
    chart: { ...rateChart(comparison), title },
    table: tableOf(comparison.contenders, [
      ['', ({ name }) => name],
      ['hand-offs/s', (result) => whole(typical(result, ({ perSecond }) => perSecond))],
      ['× plain', (result) => timesPlain(comparison, result)?.toFixed(1) ?? ''],
      ['wait p50 ms', (result) => typical(result, ({ waitP50Ms }) => waitP50Ms).toFixed(2)],
      ['p99 ms', (result) => atLeast(result) + typical(result, ({ waitP99Ms }) => waitP99Ms).toFixed(2)],
      ['p99 / p50', (result) => waitSpread(result).toFixed(2)],
      ['requests', ({ counted }) => (counted.requests > 0 ? counted.perOperation.toFixed(2) : '')],
      ['overlaps', (result) => String(overlapsOf(result))],
    ]),
    note: 'Requests are those of an acquisition and its release. All waiters ask again as soon as they have left.',
  };
}

function timesPlain(comparison: Comparison, result: ContenderResult): number | undefined {
  const plain = floorOf(comparison, result);
  return plain === undefined || plain === result ? undefined : speedOver(result, plain);
}
