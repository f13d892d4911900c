import type { Table } from '../../report/table.ts';
import {
  type Comparison,
  type ContenderResult,
  floorOf,
  gapInPings,
  gapInRestedPings,
  paired,
  type Report,
  typical,
} from './result.ts';
import type { Target } from './targets.ts';

/** A part of the report: a table and what to know of it. */
export interface Section {
  readonly title: string;
  readonly table: Table;
}

export function sectionsOf(report: Report): Section[] {
  return [...report.comparisons.map(comparisonSection), ...otherSections(report)];
}

function comparisonSection(comparison: Comparison): Section {
  const table = comparison.contended ? contendedTable(comparison) : uncontendedTable(comparison);
  return { title: comparison.title, table };
}

function uncontendedTable(comparison: Comparison): Table {
  return {
    heading: [
      '',
      'pairs/s',
      '× raw',
      'acquire p50',
      'p99 ms',
      'requests',
      'server µs',
      'beyond raw',
      'server CPU µs',
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
        serverMicros(result),
        floor ? signed(paired(result, floor, (one, raw) => one.serverMicros - raw.serverMicros)) : '',
        typical(result, (round) => round.serverCpuMicros).toFixed(1),
        typical(result, (round) => round.clientCpuMicros ?? Number.NaN).toFixed(1),
      ];
    }),
  };
}

function contendedTable(comparison: Comparison): Table {
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
      'server µs',
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
        serverMicros(result),
        String(result.rounds.reduce((sum, { overlaps }) => sum + overlaps, 0)),
      ];
    }),
  };
}

function otherSections({ core, renewal, waiting, memory }: Report): Section[] {
  const sections: Section[] = [];
  if (core !== undefined) {
    const { withCoreMicros, bareBackendMicros, coreMicros } = core;
    sections.push({
      title: 'Core: processor time of one uncontended acquire and release, memory backend',
      table: {
        heading: ['', 'µs'],
        lines: [
          ['with core', withCoreMicros.toFixed(2)],
          ['bare backend', bareBackendMicros.toFixed(2)],
          ['core itself', coreMicros.toFixed(2)],
        ],
      },
    });
  }
  if (renewal !== undefined) {
    sections.push({
      title: 'Renewal: leases kept alive by one process',
      table: {
        heading: [
          '',
          'leases',
          'ttl ms',
          'requests a round',
          'timers',
          'loop delay p99 ms',
          'max ms',
          'still valid',
        ],
        lines: renewal.map((result) => [
          result.contender,
          whole(result.leases),
          whole(result.ttlMs),
          result.requestsByRound.join(', '),
          String(result.timers),
          result.delayP99Ms.toFixed(1),
          result.delayMaxMs.toFixed(1),
          whole(result.valid),
        ]),
      },
    });
  }
  if (waiting !== undefined) {
    sections.push({
      title: 'Waiting: waiters of one process on held locks, holder included',
      table: {
        heading: ['', 'waiters', 'locks', 'seconds', 'requests/s'],
        lines: waiting.map((result) => [
          result.contender,
          whole(result.waiters),
          whole(result.locks),
          String(result.seconds),
          result.requestsPerSecond.toFixed(1),
        ]),
      },
    });
  }
  if (memory !== undefined) {
    sections.push({
      title: 'Memory: distinct names acquired and released, 64 at once',
      table: {
        heading: ['', 'names', 'pairs/s', 'heap growth MB', 'token keys left', 'other keys left'],
        lines: memory.map((result) => [
          result.contender,
          whole(result.names),
          whole(result.perSecond),
          (result.heapGrowthBytes / 2 ** 20).toFixed(2),
          whole(result.tokenKeys),
          whole(result.otherKeys),
        ]),
      },
    });
  }
  return sections;
}

export function targetTable(targets: readonly Target[]): Table {
  return {
    heading: ['row', 'adapter', 'asked', 'measured', 'reached'],
    lines: targets.map(({ row, contender, asked, measured, reached }) => [
      row,
      contender,
      asked,
      measured,
      reached ? 'yes' : 'NO',
    ]),
  };
}

function label({ name, kind }: ContenderResult): string {
  return kind === 'ours' ? `${name} *` : name;
}

function serverMicros(result: ContenderResult): string {
  const approximate = result.counted.alsoInScripts.length > 0 ? '≤ ' : '';
  return approximate + typical(result, (round) => round.serverMicros).toFixed(1);
}

function signed(value: number): string {
  return `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(1)}`;
}

function whole(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ' ');
}
