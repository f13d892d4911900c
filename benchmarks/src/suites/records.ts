import type { Comparison, ContenderResult } from '../compare/comparison.ts';
import { floorOf, gapInPings, overlapsOf, typical } from '../compare/comparison.ts';
import { label } from '../compare/tables.ts';
import type { WaitingResult } from '../compare/waiting.ts';
import { runSuite } from '../command.ts';
import type { Run } from '../conduct/run.ts';
import { openTestbed } from '../conduct/testbed.ts';
import { contendersOf } from '../contenders/all.ts';
import type { Contender } from '../contenders/contender.ts';
import { barChart } from '../report/chart.ts';
import { whole } from '../report/figures.ts';
import type { ReportHead } from '../report/head.ts';
import type { Section, Target } from '../report/report.ts';
import { tableOf } from '../report/table.ts';
import { absenceOf, recordStores } from '../stores/records.ts';
import { measureRows, type Row, waitingRow } from './rows.ts';
import { type Settings, settingsFor, type SettingsOptions } from './settings.ts';
import { HELD_MS, workload } from './stores.ts';
import { judgeOurs, noOverlap, speedOver, targetOf } from './targets.ts';

/** What was measured on one store. */
export interface RecordFigures {
  readonly store: string;
  readonly comparisons: readonly Comparison[];
  readonly waiting?: readonly WaitingResult[];
}

interface RecordsReport extends ReportHead {
  readonly suite: 'records';
  readonly settings: Settings;
  readonly records: readonly RecordFigures[];
}

const FEW = 32;
const MANY = 1_000;

export const recordRows: readonly Row[] = [
  ...workload,
  waitingRow([
    { waiters: FEW, locks: 1, ttlMs: HELD_MS },
    { waiters: MANY, locks: 1, ttlMs: HELD_MS },
  ]),
];

export async function recordContenders(): Promise<readonly Contender[]> {
  return (await Promise.all(recordStores.map(({ id }) => contendersOf(id)))).flat();
}

/** `bench records`: the stores that compare and swap, against a hand-written lock on the same client. Gives the exit code. */
export async function recordsSuite(args: readonly string[]): Promise<number> {
  return await runSuite<RecordsReport>(
    {
      name: 'records',
      rows: recordRows.map(({ id }) => id),
      contenders: recordContenders,
      async measure(options, { rows, contenders }, run) {
        const measured = await measureRecords(run, options, rows, contenders);
        return run.report('records', { settings: recordSettings(options), ...measured });
      },
      sectionsOf: ({ records }) => recordSections(records),
      judge: ({ records }) => judgeRecords(records),
    },
    args,
  );
}

/** Bursts have time to end: these stores take a few milliseconds for a request, and processes poll them. */
function recordSettings(options: SettingsOptions): Settings {
  const base = settingsFor(options);
  return { ...base, warmUpMs: base.warmUpMs / 2, burstLimitMs: 15_000, turnsLimitMs: 15_000, rushTurns: 2 };
}

export async function measureRecords(
  run: Run,
  options: SettingsOptions,
  rows: ReadonlySet<string>,
  all: readonly Contender[],
): Promise<{ readonly records: RecordFigures[]; readonly absent: string[] }> {
  const records: RecordFigures[] = [];
  const absent: string[] = [];
  for (const store of recordStores) {
    const contenders = all.filter((contender) => contender.store === store.id);
    if (contenders.length === 0) continue;
    const absence = absenceOf(store);
    if (absence !== undefined) {
      absent.push(absence);
      continue;
    }
    const figures = await run.progress.part(store.id, () =>
      run.on(
        () => openTestbed(store.start),
        contenders,
        async (testbed) => {
          const chosen = recordRows.filter(({ id }) => rows.has(id));
          const setup = { testbed, settings: recordSettings(options), contenders, progress: run.progress };
          return await measureRows(chosen, setup);
        },
      ),
    );
    if (figures !== undefined) records.push({ store: store.id, ...figures });
  }
  return { records, absent };
}

interface Line extends Pick<ContenderResult, 'name' | 'kind'> {
  readonly row: (id: string) => { comparison: Comparison; result: ContenderResult } | undefined;
  readonly waiting: readonly WaitingResult[];
}

export function recordSections(records: readonly RecordFigures[]): Section[] {
  const lines = records.flatMap(linesOf);
  if (lines.length === 0) return [];
  const cell =
    (id: string, of: (result: ContenderResult, comparison: Comparison) => string) =>
    ({ row }: Line): string => {
      const found = row(id);
      return found ? of(found.result, found.comparison) : '';
    };
  const speed = (result: ContenderResult): string => whole(typical(result, ({ perSecond }) => perSecond));
  const timesRaw = (result: ContenderResult, comparison: Comparison): string => {
    const floor = floorOf(comparison, result);
    return floor ? speedOver(result, floor).toFixed(2) : '';
  };
  const requests = ({ counted }: ContenderResult): string => counted.perOperation.toFixed(2);
  const conflicts = ({ counted }: ContenderResult): string => counted.conflictsPerOperation?.toFixed(2) ?? '';
  const idle =
    (waiters: number) =>
    ({ waiting }: Line): string =>
      waiting.find((one) => one.waiters === waiters)?.requestsPerSecond.toFixed(1) ?? '';
  const gap = (result: ContenderResult): string => gapInPings(result).toFixed(1);
  const title = 'Stores that compare and swap, against a hand-written lock on the same client';
  const chart = barChart(
    { id: 'records', title, unit: '4 × 8 waiters: hand-offs/s', better: 'more', digits: 0 },
    lines.flatMap(({ name, kind, row }) => {
      const rounds = row('processes')?.result.rounds;
      return rounds
        ? [{ name, ours: kind === 'ours', values: rounds.map(({ perSecond }) => perSecond) }]
        : [];
    }),
  );
  return [
    {
      title,
      ...(lines.some(({ row }) => row('processes')) && { chart }),
      table: tableOf(lines, [
        ['', label],
        ['pairs/s', cell('sequential', speed)],
        ['× raw', cell('sequential', timesRaw)],
        ['requests', cell('sequential', requests)],
        ['32 waiters: hand-offs/s', cell('waiters', speed)],
        ['× raw', cell('waiters', timesRaw)],
        ['requests', cell('waiters', requests)],
        ['gap/PING', cell('waiters', gap)],
        ['4 × 8: hand-offs/s', cell('processes', speed)],
        ['× raw', cell('processes', timesRaw)],
        ['requests', cell('processes', requests)],
        ['conflicts', cell('processes', conflicts)],
        ['gap/PING', cell('processes', gap)],
        [`${FEW} idle waiters: requests/s`, idle(FEW)],
        [`${whole(MANY)} idle`, idle(MANY)],
        ['overlaps', ({ row }) => String(overlapsIn(row))],
      ]),
      note:
        'Requests and conflicts are those per acquisition, as the clients count them, repetitions included; a conflict is a write that was ' +
        'refused since another one came first. The hand-written locks poll every 100 ± 50 ms, each waiter by itself, so that ' +
        `${whole(MANY)} of them send some 10 000 requests a second; they mint no token. The servers are DynamoDB Local, moto, nats-server and mongo-java-server: ` +
        'of Amazon and of a real MongoDB only the requests and the conflicts can be told, not the speed.',
    },
  ];
}

function overlapsIn(row: Line['row']): number {
  return ['waiters', 'processes'].reduce((sum, id) => {
    const result = row(id)?.result;
    return sum + (result ? overlapsOf(result) : 0);
  }, 0);
}

function linesOf({ comparisons, waiting = [] }: RecordFigures): Line[] {
  const all = new Map<string, Pick<ContenderResult, 'name' | 'kind'>>();
  for (const one of comparisons.flatMap(({ contenders }) => contenders)) all.set(one.name, one);
  // Of a run of the idle waiters alone.
  for (const { contender } of waiting) {
    if (!all.has(contender)) all.set(contender, { name: contender, kind: 'ours' });
  }
  return [...all.values()].map(({ name, kind }) => ({
    ...{ name, kind },
    row(id) {
      const comparison = comparisons.find((one) => one.id === id);
      const result = comparison?.contenders.find((one) => one.name === name);
      return comparison && result && { comparison, result };
    },
    waiting: waiting.filter(({ contender }) => contender === name),
  }));
}

const MOST_CONFLICTS = 1.5;
const MOST_PINGS = 3;
/** Of two counts over a few seconds: heartbeats and polls that begin before or in the window. */
const SLACK_PER_SECOND = 2;

export function judgeRecords(records: readonly RecordFigures[]): Target[] {
  return records.flatMap(({ store, comparisons, waiting = [] }) => [
    ...judgeOurs(comparisons, ({ id, contended }, result, target) => {
      const { perOperation, conflictsPerOperation = Number.NaN } = result.counted;
      if (!contended)
        return [target('2 requests', perOperation.toFixed(2), perOperation.toFixed(1) === '2.0')];
      const pings = gapInPings(result);
      return [
        noOverlap(result, target),
        ...(id === 'processes'
          ? [
              target(
                `≤ ${MOST_CONFLICTS} conflicts per acquisition`,
                conflictsPerOperation.toFixed(2),
                conflictsPerOperation <= MOST_CONFLICTS,
              ),
            ]
          : []),
        ...(store === 'nats'
          ? [target(`gap ≤ ${MOST_PINGS} × PING`, pings.toFixed(1), pings <= MOST_PINGS)]
          : []),
      ];
    }),
    ...judgeIdle(waiting),
  ]);
}

/** The load of polling does not depend on the number of waiters. */
function judgeIdle(waiting: readonly WaitingResult[]): Target[] {
  const [few, many] = [FEW, MANY].map((waiters) => waiting.find((one) => one.waiters === waiters));
  if (few === undefined || many === undefined) return [];
  const [least, most] = [few.requestsPerSecond, many.requestsPerSecond];
  return [
    targetOf('waiting', many.contender)(
      `${whole(MANY)} idle waiters send as many requests as ${FEW}`,
      `${most.toFixed(1)}/s to ${least.toFixed(1)}/s`,
      most <= least + SLACK_PER_SECOND,
    ),
  ];
}
