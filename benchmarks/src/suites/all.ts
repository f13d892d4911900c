import type { Comparison, ContenderResult } from '../compare/comparison.ts';
import { overlapsOf, typical } from '../compare/comparison.ts';
import { openTestbed } from '../conduct/testbed.ts';
import type { Contender } from '../contenders/contender.ts';
import { describeMachine, versionsOf } from '../measure/machine.ts';
import { Progress } from '../measure/progress.ts';
import { type Chart, spreadOf } from '../report/chart.ts';
import { whole } from '../report/figures.ts';
import { reportHead, type ReportHead } from '../report/head.ts';
import type { Section } from '../report/section.ts';
import type { Target } from '../report/target.ts';
import { allStores, oursOnAllStores } from '../stores/all.ts';
import { runSuite, type Selection } from './command.ts';
import { compareAll } from './stores/measure.ts';
import { contentions, sequential, settingsFor, type StoreSettings } from './workload.ts';

const rows = [sequential.id, ...contentions.map(({ id }) => id)];

interface AllReport extends ReportHead {
  readonly suite: 'all';
  readonly settings: StoreSettings;
  /** Of each backend, as far as its rows were measured. */
  readonly backends: readonly { readonly name: string; readonly comparisons: readonly Comparison[] }[];
}

/** `bench all`: every backend on the same workload, in one table. Gives the exit code. */
export async function allSuite(args: readonly string[]): Promise<number> {
  return await runSuite<AllReport>(
    {
      name: 'all',
      rows,
      contenders: oursOnAllStores,
      measure: (options, selection, say) => measureAll(settingsFor(options), selection, say),
      sectionsOf: (report) => [tableOf(report)],
      judge,
    },
    args,
  );
}

async function measureAll(
  settings: StoreSettings,
  selection: Selection,
  say: (text: string) => void,
): Promise<AllReport> {
  const machine = describeMachine();
  const progress = new Progress(say);
  const backends: AllReport['backends'][number][] = [];
  const versions: Record<string, string> = {};
  let placement = '';
  for (const store of allStores) {
    const contenders = selection.contenders.filter((contender) => contender.store === store.id);
    if (contenders.length === 0) continue;
    await progress.part(`${store.id}`, async () => {
      await using testbed = await openTestbed(store.start);
      placement = testbed.placement;
      Object.assign(versions, testbed.server.versions, versionsOf(contenders.flatMap((one) => one.packages)));
      for (const contender of contenders) {
        progress.report(`  ${contender.name}`);
        // One after another: with two at once, the rest of one would be in the other's figures.
        const wanted = { rows: rowsOf(contender, selection.rows), contenders: [contender] };
        backends.push({
          name: contender.name,
          comparisons: await compareAll(testbed, settings, wanted, progress),
        });
        await testbed.endWorkers(contender);
      }
    });
  }
  progress.report('done');
  return {
    ...reportHead('all', machine, placement, versions),
    settings,
    failures: progress.failures,
    backends,
  };
}

/** A backend of one process has no hand-off to other processes. */
function rowsOf({ name }: Contender, wanted: ReadonlySet<string>): ReadonlySet<string> {
  return name === '@locks/memory' ? new Set([...wanted].filter((row) => row !== 'processes')) : wanted;
}

function tableOf({ backends }: AllReport): Section {
  const title = 'Every backend on the same workload';
  const waiters = backends.flatMap(({ comparisons }) => comparisons.filter(({ id }) => id === 'waiters'));
  return {
    title,
    ...(waiters.length > 0 ? { chart: chartOf(title, waiters) } : {}),
    table: {
      heading: [
        '',
        'pairs/s',
        'acquire p50 ms',
        'operations',
        '32 waiters: hand-offs/s',
        'p99 ms',
        '4 × 8: hand-offs/s',
        'p99 ms',
        'operations',
        'overlaps',
      ],
      lines: backends.map(({ name, comparisons }) => {
        const of = (row: string): ContenderResult | undefined =>
          comparisons.find(({ id }) => id === row)?.contenders[0];
        const [alone, waiters, processes] = [of('sequential'), of('waiters'), of('processes')];
        return [
          name,
          speed(alone),
          alone ? typical(alone, ({ waitP50Ms }) => waitP50Ms).toFixed(3) : '',
          operations(alone),
          speed(waiters),
          longest(waiters),
          speed(processes),
          longest(processes),
          operations(processes),
          String([waiters, processes].reduce((sum, one) => sum + (one ? overlapsOf(one) : 0), 0)),
        ];
      }),
    },
    note:
      'Backends without a server and without other processes have no figures there. Of sqlite nobody counts operations. ' +
      'The critical section is 1 ms, so no more than 1 000 hand-offs a second are possible.',
  };
}

function chartOf(title: string, waiters: readonly Comparison[]): Chart {
  const bars = waiters.flatMap(({ contenders }) =>
    contenders.map(({ name, rounds }) => ({
      name,
      ours: true,
      ...spreadOf(rounds.map(({ perSecond }) => perSecond)),
    })),
  );
  return {
    kind: 'bars',
    id: 'waiters',
    title,
    unit: '32 waiters: hand-offs/s',
    better: 'more',
    digits: 0,
    bars,
  };
}

function speed(result: ContenderResult | undefined): string {
  return result ? whole(typical(result, ({ perSecond }) => perSecond)) : '';
}

function operations(result: ContenderResult | undefined): string {
  return result && result.counted.requests > 0 ? result.counted.perOperation.toFixed(2) : '';
}

function longest(result: ContenderResult | undefined): string {
  if (result === undefined) return '';
  const more = result.rounds.some(({ cut }) => cut) ? '≥ ' : '';
  return more + typical(result, ({ waitP99Ms }) => waitP99Ms).toFixed(1);
}

function judge({ backends }: AllReport): Target[] {
  return backends.flatMap(({ name, comparisons }) =>
    comparisons
      .filter(({ contended }) => contended)
      .map(({ id, contenders }): Target => {
        const overlaps = contenders.reduce((sum, result) => sum + overlapsOf(result), 0);
        return {
          row: id,
          contender: name,
          asked: 'no overlap',
          measured: String(overlaps),
          reached: overlaps === 0,
        };
      }),
  );
}
