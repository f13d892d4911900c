import type { Chart } from '../report/chart.ts';
import { whole } from '../report/figures.ts';
import type { Section } from '../report/report.ts';
import { tableOf } from '../report/table.ts';
import type { Cost, FleetFigures, StoreCosts } from './calculator.ts';

/** The tables of the costs, and the curves over more and more processes. */
export function sizingSections(figures: readonly StoreCosts[]): Section[] {
  const fleets = figures.filter((costs) => costs.fleets.length > 0);
  return [
    ...(figures.some(({ pair }) => pair.clientMicros > 0)
      ? [costSection(figures), byteSection(figures)]
      : []),
    ...(fleets.length > 0
      ? [fleetSection(fleets), ...CURVES.map((curve) => curveSection(fleets, curve))]
      : []),
  ];
}

export function costSection(figures: readonly StoreCosts[]): Section {
  const both = (of: (costs: StoreCosts) => Cost | undefined) => (costs: StoreCosts) => {
    const cost = of(costs);
    return cost === undefined ? '' : `${micros(cost.serverMicros)} + ${micros(cost.clientMicros)}`;
  };
  const requests = (of: (costs: StoreCosts) => Cost) => (costs: StoreCosts) =>
    (of(costs).requests ?? 0).toFixed(2);
  return {
    title: 'Costs: µs of processor time, server + client',
    table: tableOf(figures, [
      ['', ({ backend }) => backend],
      ['acquire and release', both(({ pair }) => pair)],
      ['requests', requests(({ pair }) => pair)],
      ['hand-off', both(({ handOff }) => handOff)],
      ['requests', requests(({ handOff }) => handOff)],
      ['renewal', both(({ renewal }) => renewal)],
      ['waiter, each second', both(({ waiter }) => waiter)],
      ['each of a `list`', both(({ listed }) => listed)],
    ]),
    note: 'A hand-off is an acquire that waits for another process, and its release. Renewals and waiters are those of one process that has many.',
  };
}

function byteSection(figures: readonly StoreCosts[]): Section {
  return {
    title: 'Bytes of each lease and waiter',
    table: tableOf(figures, [
      ['', ({ backend }) => backend],
      ['lease, store', ({ bytes }) => whole(bytes.leaseServer)],
      ['lease, client', ({ bytes }) => whole(bytes.leaseClient)],
      ['waiter, store', ({ bytes }) => whole(bytes.waiterServer)],
      ['waiter, client', ({ bytes }) => whole(bytes.waiterClient)],
    ]),
    note: 'Redis: `used_memory`. PostgreSQL, MariaDB, SQLite: files. etcd: resident memory. ZooKeeper: `approximate_data_size`.',
  };
}

/** Of the largest fleet. */
export function fleetSection(figures: readonly StoreCosts[]): Section {
  const of = (figure: (fleet: FleetFigures) => string) => (costs: StoreCosts) =>
    figure(costs.fleets.at(-1) as FleetFigures);
  const server = (cost: (fleet: FleetFigures) => Cost) => of((fleet) => micros(cost(fleet).serverMicros));
  return {
    title: 'Each of many processes: µs of the server in a second, connections and bytes',
    table: tableOf(figures, [
      ['', ({ backend }) => backend],
      ['processes', of(({ processes }) => whole(processes))],
      ['connected', server(({ connected }) => connected)],
      ['+ one lease', server(({ holding }) => holding)],
      ['+ one waiter', server(({ waiting }) => waiting)],
      ['connections', of(({ connections }) => connections.toFixed(2))],
      ['server kB', of(({ serverBytes }) => whole(serverBytes / 1_024))],
      ['client kB', of(({ clientBytes }) => whole(clientBytes / 1_024))],
    ]),
    note: [
      'Each process has a client of its own, a lease with a ttl of 3 s, renewed every second, and a waiter for the lock of the next one.',
      ...figures.flatMap(({ backend, endsBecause }) => (endsBecause ? `${backend}: ${endsBecause}.` : [])),
    ].join(' '),
  };
}

interface Curve {
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  readonly figure: (fleet: FleetFigures) => number;
  readonly digits: number;
}

const CURVES: readonly Curve[] = [
  {
    id: 'idle',
    title: 'Processes that hold and wait: µs of the server in a second, all together',
    unit: 'µs',
    figure: idleMicros,
    digits: 0,
  },
  {
    id: 'hand-off',
    title: 'A hand-off between two more processes meanwhile: ms',
    unit: 'ms',
    figure: ({ handOffMs }) => handOffMs,
    digits: 2,
  },
  {
    id: 'hand-off-server',
    title: 'A hand-off between two more processes meanwhile: µs of the server',
    unit: 'µs',
    figure: ({ handOffServerMicros }) => handOffServerMicros,
    digits: 0,
  },
];

/** What all processes of a fleet cost the server in a second. */
export function idleMicros({ processes, connected, holding, waiting }: FleetFigures): number {
  return processes * (connected.serverMicros + holding.serverMicros + waiting.serverMicros);
}

function curveSection(figures: readonly StoreCosts[], { id, title, unit, figure, digits }: Curve): Section {
  const sizes = [...new Set(figures.flatMap(({ fleets }) => fleets.map(({ processes }) => processes)))];
  const chart: Chart = {
    ...{ kind: 'growth', id, title, unit, better: 'less', digits, along: 'processes' },
    curves: figures.map(({ backend, fleets }) => ({
      name: backend,
      points: fleets
        .map((fleet) => ({ at: fleet.processes, median: figure(fleet) }))
        // Both axes are logarithmic.
        .filter(({ median }) => median > 0),
    })),
  };
  const table = tableOf(figures, [
    ['', ({ backend }) => backend],
    ...sizes.map(
      (size) =>
        [
          whole(size),
          ({ fleets }: StoreCosts) => {
            const fleet = fleets.find(({ processes }) => processes === size);
            return fleet === undefined ? '' : figure(fleet).toFixed(digits);
          },
        ] as const,
    ),
  ]);
  return { title, table, chart };
}

function micros(value: number): string {
  return value < 10 ? value.toFixed(1) : whole(value);
}
