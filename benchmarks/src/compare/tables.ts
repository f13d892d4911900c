import { barChart, type Chart } from '../report/chart.ts';
import { signed, whole } from '../report/figures.ts';
import type { Section } from '../report/report.ts';
import { type Column, tableOf } from '../report/table.ts';
import {
  type Comparison,
  type ContenderResult,
  floorOf,
  gapInPings,
  gapInRestedPings,
  overlapsOf,
  paired,
  type Round,
  typical,
} from './comparison.ts';

export function comparisonSection(comparison: Comparison): Section {
  const columns = comparison.contended ? contendedColumns(comparison) : uncontendedColumns(comparison);
  return {
    title: comparison.title,
    table: tableOf(comparison.contenders, columns),
    chart: rateChart(comparison),
  };
}

/** Acquisitions a second, a bar for each contender. */
export function rateChart({ id, title, contended, contenders }: Comparison): Chart {
  return barChart(
    { id, title, unit: contended ? 'hand-offs/s' : 'pairs/s', better: 'more', digits: 0 },
    contenders.map(({ name, kind, rounds }) => ({
      name,
      ours: kind === 'ours',
      values: rounds.map(({ perSecond }) => perSecond),
    })),
  );
}

type ResultColumn = Column<ContenderResult>;

const perSecond = (result: ContenderResult): string => whole(typical(result, (round) => round.perSecond));
const requests = ({ counted }: ContenderResult): string => counted.perOperation.toFixed(2);

/** The ratio to the floor's pairs or hand-offs a second. */
function timesFloor(comparison: Comparison): (result: ContenderResult) => string {
  return (result) => {
    const floor = floorOf(comparison, result);
    return floor ? paired(result, floor, (one, raw) => one.perSecond / raw.perSecond).toFixed(2) : '';
  };
}

function uncontendedColumns(comparison: Comparison): (ResultColumn | false)[] {
  const timed = hasFigure(comparison, 'serverMicros');
  const beyondRaw = (result: ContenderResult): string => {
    const floor = floorOf(comparison, result);
    return floor ? signed(paired(result, floor, (one, raw) => micros(one) - micros(raw))) : '';
  };
  const micro =
    (figure: 'serverCpuMicros' | 'clientCpuMicros') =>
    (result: ContenderResult): string =>
      typical(result, (round) => round[figure] ?? Number.NaN).toFixed(1);
  return [
    ['', label],
    ['pairs/s', perSecond],
    ['× raw', timesFloor(comparison)],
    ['acquire p50', (result) => typical(result, (round) => round.waitP50Ms).toFixed(3)],
    ['p99 ms', (result) => typical(result, (round) => round.waitP99Ms).toFixed(3)],
    ['requests', requests],
    timed && ['server µs', serverMicros],
    timed && ['beyond raw', beyondRaw],
    hasFigure(comparison, 'serverCpuMicros') && ['server CPU µs', micro('serverCpuMicros')],
    ['client CPU µs', micro('clientCpuMicros')],
  ];
}

export function contendedColumns(comparison: Comparison): (ResultColumn | false)[] {
  return [
    ['', label],
    ['hand-offs/s', perSecond],
    ['× poll', timesFloor(comparison)],
    ['wait p50', (result) => atLeast(result) + typical(result, (round) => round.waitP50Ms).toFixed(2)],
    ['p99 ms', longestWait],
    ['p99/p50', (result) => waitSpread(result).toFixed(2)],
    ['gap ms', (result) => typical(result, (round) => round.gapMs ?? Number.NaN).toFixed(3)],
    ['gap/PING', (result) => gapInPings(result).toFixed(1)],
    ['gap/rested', (result) => gapInRestedPings(result).toFixed(1)],
    ['requests', requests],
    hasFigure(comparison, 'serverMicros') && ['server µs', serverMicros],
    ['overlaps', (result) => String(overlapsOf(result))],
  ];
}

/** A block that was cut short would have had longer waits. */
export function atLeast({ rounds }: ContenderResult): string {
  return rounds.some(({ cut }) => cut) ? '≥ ' : '';
}

export function longestWait(result: ContenderResult): string {
  return atLeast(result) + typical(result, (round) => round.waitP99Ms).toFixed(1);
}

export function waitSpread(result: ContenderResult): number {
  return typical(result, (round) => round.waitP99Ms / round.waitP50Ms);
}

export function label({ name, kind }: Pick<ContenderResult, 'name' | 'kind'>): string {
  return kind === 'ours' ? `${name} *` : name;
}

function hasFigure({ contenders }: Comparison, figure: 'serverMicros' | 'serverCpuMicros'): boolean {
  return contenders.some(({ rounds }) => rounds.some((round) => round[figure] !== undefined));
}

function micros({ serverMicros = Number.NaN }: Round): number {
  return serverMicros;
}

function serverMicros(result: ContenderResult): string {
  const approximate = result.counted.alsoInScripts.length > 0 ? '≤ ' : '';
  return approximate + typical(result, micros).toFixed(1);
}
