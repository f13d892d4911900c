import { type Chart, spreadOf } from '../report/chart.ts';
import { signed, whole } from '../report/figures.ts';
import type { Section } from '../report/section.ts';
import type { Table } from '../report/table.ts';
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
import type { TripsResult } from './trips.ts';
import type { KilledResult } from './killed.ts';
import type { WaitingResult } from './waiting.ts';

export function comparisonSection(comparison: Comparison): Section {
  const table = comparison.contended ? contendedTable(comparison) : uncontendedTable(comparison);
  return { title: comparison.title, table, chart: rateChart(comparison) };
}

/** Acquisitions a second, a bar for each contender. */
export function rateChart({ id, title, contended, contenders }: Comparison): Chart {
  return {
    kind: 'bars',
    id,
    title,
    unit: contended ? 'hand-offs/s' : 'pairs/s',
    better: 'more',
    digits: 0,
    bars: contenders.map(({ name, kind, rounds }) => ({
      name,
      ours: kind === 'ours',
      ...spreadOf(rounds.map(({ perSecond }) => perSecond)),
    })),
  };
}

function uncontendedTable(comparison: Comparison): Table {
  const timed = hasFigure(comparison, 'serverMicros');
  const cpuTimed = hasFigure(comparison, 'serverCpuMicros');
  return {
    heading: [
      '',
      'pairs/s',
      '× raw',
      'acquire p50',
      'p99 ms',
      'requests',
      ...(timed ? ['server µs', 'beyond raw'] : []),
      ...(cpuTimed ? ['server CPU µs'] : []),
      'client CPU µs',
    ],
    lines: comparison.contenders.map((result) => {
      const floor = floorOf(comparison, result);
      return [
        label(result),
        whole(typical(result, (round) => round.perSecond)),
        floor ? paired(result, floor, (one, raw) => one.perSecond / raw.perSecond).toFixed(2) : '',
        typical(result, (round) => round.waitP50Ms).toFixed(3),
        typical(result, (round) => round.waitP99Ms).toFixed(3),
        result.counted.perOperation.toFixed(2),
        ...(timed
          ? [
              serverMicros(result),
              floor ? signed(paired(result, floor, (one, raw) => micros(one) - micros(raw))) : '',
            ]
          : []),
        ...(cpuTimed ? [typical(result, (round) => round.serverCpuMicros ?? Number.NaN).toFixed(1)] : []),
        typical(result, (round) => round.clientCpuMicros ?? Number.NaN).toFixed(1),
      ];
    }),
  };
}

function contendedTable(comparison: Comparison): Table {
  const timed = hasFigure(comparison, 'serverMicros');
  return {
    heading: [
      '',
      'hand-offs/s',
      '× poll',
      'wait p50',
      'p99 ms',
      'p99/p50',
      'gap ms',
      'gap/PING',
      'gap/rested',
      'requests',
      ...(timed ? ['server µs'] : []),
      'overlaps',
    ],
    lines: comparison.contenders.map((result) => {
      const floor = floorOf(comparison, result);
      // A block that was cut short would have had longer waits.
      const more = result.rounds.some(({ cut }) => cut) ? '≥ ' : '';
      return [
        label(result),
        whole(typical(result, (round) => round.perSecond)),
        floor ? paired(result, floor, (one, poll) => one.perSecond / poll.perSecond).toFixed(2) : '',
        more + typical(result, (round) => round.waitP50Ms).toFixed(2),
        more + typical(result, (round) => round.waitP99Ms).toFixed(1),
        typical(result, (round) => round.waitP99Ms / round.waitP50Ms).toFixed(2),
        typical(result, (round) => round.gapMs ?? Number.NaN).toFixed(3),
        gapInPings(result).toFixed(1),
        gapInRestedPings(result).toFixed(1),
        result.counted.perOperation.toFixed(2),
        ...(timed ? [serverMicros(result)] : []),
        String(overlapsOf(result)),
      ];
    }),
  };
}

export function tripsSection(trips: readonly TripsResult[]): Section {
  const contended = trips.some(({ handOff }) => handOff !== undefined);
  const figure = (value: number | undefined): string => value?.toFixed(2) ?? '';
  return {
    title: 'Round trips, one after another',
    table: {
      heading: [
        '',
        'acquire',
        'acquire and release',
        ...(contended ? ['hand-off', 'hand-off to another process'] : []),
        'latency ms',
        'PING ms',
      ],
      lines: trips.map((result) => [
        result.kind === 'ours' ? `${result.name} *` : result.name,
        figure(result.acquire),
        figure(result.pair),
        ...(contended ? [figure(result.handOff), figure(result.handOffBetween)] : []),
        String(result.latencyMs),
        result.pingMs.toFixed(1),
      ]),
    },
    note: 'Times through a proxy that delays everything by the latency each way, by the time of a `PING` there.',
  };
}

export function waitingSection(waiting: readonly WaitingResult[]): Section {
  const hasScripts = waiting.some(({ callsInScriptsPerSecond }) => callsInScriptsPerSecond !== undefined);
  return {
    title: 'Waiting: waiters of one process on held locks, holder included',
    table: {
      heading: [
        '',
        'waiters',
        'locks',
        'seconds',
        'requests/s',
        ...(hasScripts ? ['commands in scripts/s'] : []),
      ],
      lines: waiting.map((result) => [
        result.contender,
        whole(result.waiters),
        whole(result.locks),
        String(result.seconds),
        result.requestsPerSecond.toFixed(1),
        ...(hasScripts ? [result.callsInScriptsPerSecond?.toFixed(0) ?? ''] : []),
      ]),
    },
  };
}

export function killedSection(killed: readonly KilledResult[]): Section {
  const title =
    'After a killed holder: from the end of its lease in the store to the next entry, three processes wait';
  return {
    title,
    chart: {
      kind: 'bars',
      id: 'kill',
      title,
      unit: 'p50 ms',
      better: 'less',
      digits: 1,
      bars: killed.map(({ contender, p50Ms }) => ({ name: contender, ours: true, median: p50Ms })),
    },
    table: {
      heading: ['', 'kills', 'p50 ms', 'p90 ms', 'p99 ms'],
      lines: killed.map(({ contender, kills, p50Ms, p90Ms, p99Ms }) => [
        contender,
        whole(kills),
        p50Ms.toFixed(1),
        p90Ms.toFixed(1),
        p99Ms.toFixed(1),
      ]),
    },
    note: 'Where a lock ends with a session, which has no end that the store tells, counted from the kill.',
  };
}

function label({ name, kind }: ContenderResult): string {
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
