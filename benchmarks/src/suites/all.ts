import type { Comparison, ContenderResult } from '../compare/comparison.ts';
import { overlapsOf, typical } from '../compare/comparison.ts';
import { longestWait } from '../compare/tables.ts';
import { runSuite } from '../command.ts';
import { openTestbed } from '../conduct/testbed.ts';
import { barChart } from '../report/chart.ts';
import { whole } from '../report/figures.ts';
import type { ReportHead } from '../report/head.ts';
import type { Section } from '../report/report.ts';
import { tableOf } from '../report/table.ts';
import { allStores, oursOnAllStores } from '../stores/all.ts';
import {
  judgeRecords,
  measureRecords,
  recordContenders,
  type RecordFigures,
  recordRows,
  recordSections,
} from './records.ts';
import { measureRows } from './rows.ts';
import { type Settings, settingsFor } from './settings.ts';
import { workload } from './stores.ts';
import { judgeOurs, noOverlap, targetOf } from './targets.ts';

interface Backend {
  readonly name: string;
  /** As far as its rows were measured. */
  readonly comparisons: readonly Comparison[];
}

interface AllReport extends ReportHead {
  readonly suite: 'all';
  readonly settings: Settings;
  readonly backends: readonly Backend[];
  /** @defaultValue not measured yet: of an earlier report */
  readonly records?: readonly RecordFigures[];
}

/** `bench all`: every backend on the same workload, in one table. Gives the exit code. */
export async function allSuite(args: readonly string[]): Promise<number> {
  return await runSuite<AllReport>(
    {
      name: 'all',
      rows: recordRows.map(({ id }) => id),
      contenders: async () => [...(await oursOnAllStores()), ...(await recordContenders())],
      async measure(options, selection, run) {
        const settings = settingsFor(options);
        const backends: Backend[] = [];
        for (const store of allStores) {
          const contenders = selection.contenders.filter((contender) => contender.store === store.id);
          if (contenders.length === 0) continue;
          const open = () => openTestbed(store.start);
          const ofStore = await run.progress.part(store.id, () =>
            run.on(open, contenders, async (testbed) => {
              const measured: Backend[] = [];
              for (const contender of contenders) {
                run.progress.report(`  ${contender.name}`);
                // A backend of one process has no hand-off to other processes.
                const rows = workload.filter(
                  ({ id }) =>
                    selection.rows.has(id) && (contender.name !== '@locks/memory' || id !== 'processes'),
                );
                // One after another: with two at once, the rest of one would be in the other's figures.
                const setup = { testbed, settings, contenders: [contender], progress: run.progress };
                measured.push({ name: contender.name, ...(await measureRows(rows, setup)) });
                await testbed.endWorkers(contender);
              }
              return measured;
            }),
          );
          backends.push(...(ofStore ?? []));
        }
        const records = await measureRecords(run, options, selection.rows, selection.contenders);
        return run.report('all', { settings, backends, ...records });
      },
      sectionsOf: ({ backends, records = [] }) => [sectionOf(backends), ...recordSections(records)],
      judge: ({ backends, records = [] }) => [
        ...backends.flatMap(({ name, comparisons }) =>
          judgeOurs(comparisons, ({ id, contended }, result) =>
            contended ? [noOverlap(result, targetOf(id, name))] : [],
          ),
        ),
        ...judgeRecords(records),
      ],
    },
    args,
  );
}

type Cell = (result: ContenderResult) => string;

function sectionOf(backends: readonly Backend[]): Section {
  const title = 'Every backend on the same workload';
  const unit = '32 waiters: hand-offs/s';
  const waiters = backends.flatMap(({ comparisons }) => comparisons.filter(({ id }) => id === 'waiters'));
  const chart = barChart(
    { id: 'waiters', title, unit, better: 'more', digits: 0 },
    waiters.flatMap(({ contenders }) =>
      contenders.map(({ name, rounds }) => {
        return { name, ours: true, values: rounds.map(({ perSecond }) => perSecond) };
      }),
    ),
  );
  const ofRow =
    (row: string, cell: Cell) =>
    ({ comparisons }: Backend): string => {
      const result = comparisons.find(({ id }) => id === row)?.contenders[0];
      return result ? cell(result) : '';
    };
  const overlaps = ({ comparisons }: Backend): number =>
    comparisons.reduce((sum, { contenders: [result] }) => sum + (result ? overlapsOf(result) : 0), 0);
  return {
    title,
    ...(waiters.length > 0 && { chart }),
    table: tableOf(backends, [
      ['', ({ name }) => name],
      ['pairs/s', ofRow('sequential', speed)],
      [
        'acquire p50 ms',
        ofRow('sequential', (alone) => typical(alone, ({ waitP50Ms }) => waitP50Ms).toFixed(3)),
      ],
      ['operations', ofRow('sequential', operations)],
      [unit, ofRow('waiters', speed)],
      ['p99 ms', ofRow('waiters', longestWait)],
      ['4 × 8: hand-offs/s', ofRow('processes', speed)],
      ['p99 ms', ofRow('processes', longestWait)],
      ['operations', ofRow('processes', operations)],
      ['overlaps', (backend) => String(overlaps(backend))],
    ]),
    note:
      'Backends without a server and without other processes have no figures there. Of sqlite nobody counts operations. ' +
      'The critical section is 1 ms, so no more than 1 000 hand-offs a second are possible.',
  };
}

function speed(result: ContenderResult): string {
  return whole(typical(result, ({ perSecond }) => perSecond));
}

function operations({ counted }: ContenderResult): string {
  return counted.requests > 0 ? counted.perOperation.toFixed(2) : '';
}
