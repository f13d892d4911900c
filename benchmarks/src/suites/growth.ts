// One file, a suite: its measurements and the sentences that are made of them.
import { runSuite, type Selection } from '../command.ts';
import type { Run } from '../conduct/run.ts';
import { openTestbed, type Testbed } from '../conduct/testbed.ts';
import type { Worker } from '../conduct/worker.ts';
import type { Contender } from '../contenders/contender.ts';
import { median } from '../measure/quantiles.ts';
import type { Chart } from '../report/chart.ts';
import type { ReportHead } from '../report/head.ts';
import type { Section } from '../report/report.ts';
import { type Column, tableOf } from '../report/table.ts';
import { allStores, oursOnAllStores } from '../stores/all.ts';
import type { Grown } from '../worker/methods.ts';
import type { SettingsOptions } from './settings.ts';

/** One size, and what it cost. */
interface Point {
  /** Waiters of one lock, or leases that are held. */
  readonly size: number;
  /** For one more waiter to queue, or one more lease to be acquired. */
  readonly microsEach: number;
  /** For one waiter to enter and leave. */
  readonly handOffMicros?: number;
  readonly loopDelayMs: number;
  readonly clientBytesEach: number;
  readonly serverBytesEach?: number;
}

interface Curve {
  readonly row: string;
  readonly backend: string;
  readonly points: readonly Point[];
  /** Why the curve ends before the largest size. */
  readonly endsBecause?: string;
}

interface GrowthReport extends ReportHead {
  readonly suite: 'growth';
  readonly settings: GrowthSettings;
  readonly curves: readonly Curve[];
}

interface GrowthSettings {
  readonly quick: boolean;
  readonly rounds: number;
  readonly waiters: readonly number[];
  readonly leases: readonly number[];
  /** A size that would take longer, judged by the one before, is left out. */
  readonly stepLimitMs: number;
}

const full: GrowthSettings = {
  quick: false,
  rounds: 3,
  waiters: [1, 10, 100, 1_000, 3_000, 10_000],
  leases: [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000],
  stepLimitMs: 45_000,
};
const quick: GrowthSettings = {
  quick: true,
  rounds: 1,
  waiters: [1, 10, 100],
  leases: [1, 10, 100],
  stepLimitMs: 10_000,
};

/** No lease is renewed while it is measured. */
const TTL_MS = 3_600_000;
const LANES = 64;
const WARM_UP = 2_000;
const rows = ['waiters', 'leases'];

/** `bench growth`: what one more waiter and one more lease cost where there are many. Gives the exit code. */
export async function growthSuite(args: readonly string[]): Promise<number> {
  return await runSuite<GrowthReport>(
    {
      name: 'growth',
      rows,
      contenders: oursOnAllStores,
      measure,
      sectionsOf,
      judge: () => [],
    },
    args,
  );
}

async function measure(
  options: SettingsOptions,
  selection: Selection<Contender>,
  run: Run,
): Promise<GrowthReport> {
  const base = options.quick ? quick : full;
  const settings = { ...base, rounds: options.rounds ?? base.rounds };
  const curves: Curve[] = [];
  for (const store of allStores) {
    const contenders = selection.contenders.filter((contender) => contender.store === store.id);
    for (const contender of contenders) {
      const open = () => openTestbed(store.start);
      // Each on a fresh server: what another one left would count as its own.
      const grown = await run.progress.part(contender.name, () =>
        run.on(open, [contender], async (testbed) => {
          const both: Curve[] = [];
          if (selection.rows.has('waiters')) both.push(await growWaiters(testbed, contender, settings));
          if (selection.rows.has('leases')) both.push(await growLeases(testbed, contender, settings));
          return both;
        }),
      );
      curves.push(...(grown ?? []));
    }
  }
  return run.report('growth', { settings, curves });
}

async function openWorker(testbed: Testbed, { store, name }: Contender): Promise<Worker> {
  const worker = testbed.startWorker(['--expose-gc']);
  await worker.call.openLocks(store, name, testbed.url, TTL_MS);
  await worker.call.churn(WARM_UP, LANES);
  return worker;
}

/** One process, and larger and larger sizes, as long as `measureSize` takes no more than the limit. */
async function grow(
  row: string,
  testbed: Testbed,
  contender: Contender,
  { sizes, stepLimitMs }: { readonly sizes: readonly number[]; readonly stepLimitMs: number },
  measureSize: (worker: Worker, size: number) => Promise<{ readonly point: Point; readonly stepMs: number }>,
): Promise<Curve> {
  const worker = await openWorker(testbed, contender);
  const points: Point[] = [];
  let endsBecause: string | undefined;
  let lastMs = 0;
  for (const size of sizes) {
    endsBecause = tooLong(10 * lastMs, size, stepLimitMs);
    if (endsBecause !== undefined) break;
    const measured = await measureSize(worker, size).catch(unlessFull);
    if (measured === undefined) {
      endsBecause = `${withThinSpaces(size)} do not fit into the lock table of the server`;
      break;
    }
    points.push(measured.point);
    lastMs = measured.stepMs;
  }
  await testbed.end(worker);
  return { row, backend: contender.name, points, ...(endsBecause !== undefined && { endsBecause }) };
}

/** The figures of so many more waiters or leases, and the bytes of the store before and after them. */
async function grown(
  { server }: Testbed,
  size: number,
  more: number,
  add: () => Promise<Grown>,
): Promise<{ readonly point: Point; readonly stepMs: number }> {
  const before = await server.storedBytes?.();
  const { elapsedMs, loopDelayMs, heapBytes } = await add();
  const after = await server.storedBytes?.();
  const point: Point = {
    size,
    microsEach: (1_000 * elapsedMs) / more,
    loopDelayMs,
    clientBytesEach: heapBytes / more,
    ...(before !== undefined && after !== undefined && { serverBytesEach: (after - before) / more }),
  };
  return { point, stepMs: elapsedMs };
}

/** Waiters of one process on one held lock: the time to queue for each, and the time of a hand-off in a queue that long. */
async function growWaiters(
  testbed: Testbed,
  contender: Contender,
  { waiters: sizes, rounds, stepLimitMs }: GrowthSettings,
): Promise<Curve> {
  return await grow('waiters', testbed, contender, { sizes, stepLimitMs }, async (worker, size) => {
    const from = performance.now();
    const samples: Point[] = [];
    for (let round = 0; round < (size > 1_000 ? 1 : rounds); round += 1) {
      const { point } = await grown(testbed, size, size, () =>
        worker.call.join(`growth:${size}:${round}`, size),
      );
      samples.push({ ...point, handOffMicros: (1_000 * (await worker.call.serve())) / size });
    }
    return { point: typicalOf(samples), stepMs: (performance.now() - from) / samples.length };
  });
}

/** Leases of one process, more and more of them: the time to acquire each of the last nine tenths. */
async function growLeases(
  testbed: Testbed,
  contender: Contender,
  { leases: sizes, stepLimitMs }: GrowthSettings,
): Promise<Curve> {
  let held = 0;
  return await grow('leases', testbed, contender, { sizes, stepLimitMs }, async (worker, size) => {
    const more = size - held;
    held = size;
    return await grown(testbed, size, more, () => worker.call.holdMore(more, LANES));
  });
}

/** Advisory locks have room in the shared memory of PostgreSQL, whose size is fixed at its start. */
function unlessFull(error: unknown): undefined {
  if (!String(error).includes('out of shared memory')) throw error;
}

function tooLong(expectedMs: number, size: number, limitMs: number): string | undefined {
  if (expectedMs <= limitMs) return undefined;
  return `${withThinSpaces(size)} would take ${Math.round(expectedMs / 1_000)} s`;
}

function typicalOf(samples: readonly Point[]): Point {
  const [first] = samples;
  if (first === undefined) throw new Error('a size without a round');
  const of = (figure: (point: Point) => number): number => median(samples.map(figure));
  return {
    size: first.size,
    microsEach: of(({ microsEach }) => microsEach),
    handOffMicros: of(({ handOffMicros = Number.NaN }) => handOffMicros),
    loopDelayMs: of(({ loopDelayMs }) => loopDelayMs),
    clientBytesEach: of(({ clientBytesEach }) => clientBytesEach),
    ...(first.serverBytesEach !== undefined && {
      serverBytesEach: of(({ serverBytesEach = Number.NaN }) => serverBytesEach),
    }),
  };
}

/** Bytes for each are noise below this size. */
const LEAST_FOR_BYTES = 1_000;

/** The tables: the rows of `row`, what they are called, one figure, and from which size on. */
const tables: readonly {
  readonly id: string;
  readonly title: string;
  readonly figure: (point: Point) => number | undefined;
  readonly from?: number;
}[] = [
  {
    id: 'waiters-queue',
    title: 'Waiters of one lock: µs for each to queue',
    figure: ({ microsEach }) => microsEach,
  },
  {
    id: 'waiters-enter',
    title: 'Waiters of one lock: µs for each to enter and leave, in turn',
    figure: ({ handOffMicros }) => handOffMicros,
  },
  {
    id: 'waiters-delay',
    title: 'Waiters of one lock: ms for which the event loop stood still at most while they queued',
    figure: ({ loopDelayMs }) => loopDelayMs,
  },
  {
    id: 'waiters-heap',
    title: 'Waiters of one lock: bytes of the client’s heap for each',
    figure: ({ clientBytesEach }) => clientBytesEach,
    from: LEAST_FOR_BYTES,
  },
  {
    id: 'leases-acquire',
    title: 'Leases held: µs to acquire each more, 64 at once',
    figure: ({ microsEach }) => microsEach,
  },
  {
    id: 'leases-heap',
    title: 'Leases held: bytes of the client’s heap for each',
    figure: ({ clientBytesEach }) => clientBytesEach,
    from: LEAST_FOR_BYTES,
  },
  {
    id: 'leases-store',
    title: 'Leases held: bytes for each at the store (PostgreSQL, SQLite: on disk)',
    figure: ({ serverBytesEach }) => serverBytesEach,
    from: LEAST_FOR_BYTES,
  },
];

function sectionsOf({ curves, settings }: GrowthReport): Section[] {
  return tables.flatMap(({ id, title, figure, from = 0 }) => {
    const row = id.startsWith('waiters') ? 'waiters' : 'leases';
    const sizes = settings[row].filter((size) => size >= from);
    const ofRow = curves.filter((curve) => curve.row === row);
    if (ofRow.length === 0 || sizes.length === 0) return [];
    const table = tableOf(ofRow, [
      ['', ({ backend }) => backend],
      ...sizes.map(
        (size): Column<Curve> => [
          withThinSpaces(size),
          ({ points }) => {
            const point = points.find((one) => one.size === size);
            return (point && figure(point))?.toFixed(0) ?? '';
          },
        ],
      ),
    ]);
    return [{ title, table, ...chartOf(id, title, row, ofRow, figure) }];
  });
}

/** Only curves that have two points or more, and points above 0: both axes are logarithmic. */
function chartOf(
  id: string,
  title: string,
  along: string,
  curves: readonly Curve[],
  figure: (point: Point) => number | undefined,
): { readonly chart?: Chart } {
  const [, unit = ''] = /: (µs|ms|bytes)\b/.exec(title) ?? [];
  const drawn = curves
    .map(({ backend, points }) => ({
      name: backend,
      points: points
        .map((point) => ({ at: point.size, median: figure(point) ?? Number.NaN }))
        .filter(({ median: value }) => value > 0),
    }))
    .filter(({ points }) => points.length > 1);
  if (drawn.length === 0) return {};
  return { chart: { kind: 'growth', id, title, unit, better: 'less', digits: 0, along, curves: drawn } };
}

function withThinSpaces(size: number): string {
  return size.toLocaleString('en').replaceAll(',', ' ');
}
