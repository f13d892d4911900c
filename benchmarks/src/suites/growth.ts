import { openTestbed, type Testbed } from '../conduct/testbed.ts';
import type { Worker } from '../conduct/worker.ts';
import type { Contender } from '../contenders/contender.ts';
import { describeMachine, versionsOf } from '../measure/machine.ts';
import { Progress } from '../measure/progress.ts';
import { median } from '../measure/quantiles.ts';
import type { Chart } from '../report/chart.ts';
import { reportHead, type ReportHead } from '../report/head.ts';
import type { Section } from '../report/section.ts';
import { allStores, oursOnAllStores } from '../stores/all.ts';
import { runSuite, type Selection, type SettingsOptions } from './command.ts';

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
  selection: Selection,
  say: (text: string) => void,
): Promise<GrowthReport> {
  const base = options.quick ? quick : full;
  const settings = { ...base, rounds: options.rounds ?? base.rounds };
  const machine = describeMachine();
  const progress = new Progress(say);
  const curves: Curve[] = [];
  const versions: Record<string, string> = {};
  let placement = '';
  for (const store of allStores) {
    const contenders = selection.contenders.filter((contender) => contender.store === store.id);
    for (const contender of contenders) {
      // Each on a fresh server: what another one left would count as its own.
      await progress.part(contender.name, async () => {
        await using testbed = await openTestbed(store.start);
        placement = testbed.placement;
        Object.assign(versions, testbed.server.versions, versionsOf(contender.packages));
        if (selection.rows.has('waiters')) curves.push(await growWaiters(testbed, contender, settings));
        if (selection.rows.has('leases')) curves.push(await growLeases(testbed, contender, settings));
      });
    }
  }
  return {
    ...reportHead('growth', machine, placement, versions),
    settings,
    failures: progress.failures,
    curves,
  };
}

async function openWorker(testbed: Testbed, { store, name }: Contender): Promise<Worker> {
  const worker = testbed.startWorker(['--expose-gc']);
  await worker.call.openLocks(store, name, testbed.url, TTL_MS);
  await worker.call.churn(WARM_UP, LANES);
  return worker;
}

/** Waiters of one process on one held lock: the time to queue for each, and the time of a hand-off in a queue that long. */
async function growWaiters(
  testbed: Testbed,
  contender: Contender,
  { waiters, rounds, stepLimitMs }: GrowthSettings,
): Promise<Curve> {
  const worker = await openWorker(testbed, contender);
  const points: Point[] = [];
  let endsBecause: string | undefined;
  let stepMs = 0;
  for (const size of waiters) {
    endsBecause = tooLong(10 * stepMs, size, stepLimitMs);
    if (endsBecause !== undefined) break;
    const from = performance.now();
    const samples: Point[] = [];
    for (let round = 0; round < (size > 1_000 ? 1 : rounds); round += 1) {
      const before = await testbed.server.storedBytes?.();
      const joined = await worker.call.join(`growth:${size}:${round}`, size);
      const after = await testbed.server.storedBytes?.();
      samples.push({
        size,
        microsEach: (1_000 * joined.elapsedMs) / size,
        handOffMicros: (1_000 * (await worker.call.serve())) / size,
        loopDelayMs: joined.loopDelayMs,
        clientBytesEach: joined.heapBytes / size,
        ...(before !== undefined && after !== undefined && { serverBytesEach: (after - before) / size }),
      });
    }
    stepMs = (performance.now() - from) / samples.length;
    points.push(typicalOf(samples));
  }
  await testbed.end(worker);
  return {
    row: 'waiters',
    backend: contender.name,
    points,
    ...(endsBecause !== undefined && { endsBecause }),
  };
}

/** Leases of one process, more and more of them: the time to acquire each of the last nine tenths. */
async function growLeases(
  testbed: Testbed,
  contender: Contender,
  { leases, stepLimitMs }: GrowthSettings,
): Promise<Curve> {
  const worker = await openWorker(testbed, contender);
  const points: Point[] = [];
  let endsBecause: string | undefined;
  let stepMs = 0;
  let held = 0;
  for (const size of leases) {
    endsBecause = tooLong(10 * stepMs, size, stepLimitMs);
    if (endsBecause !== undefined) break;
    const more = size - held;
    const before = await testbed.server.storedBytes?.();
    const grown = await worker.call.holdMore(more, LANES);
    const after = await testbed.server.storedBytes?.();
    stepMs = grown.elapsedMs;
    held = size;
    points.push({
      size,
      microsEach: (1_000 * grown.elapsedMs) / more,
      loopDelayMs: grown.loopDelayMs,
      clientBytesEach: grown.heapBytes / more,
      ...(before !== undefined && after !== undefined && { serverBytesEach: (after - before) / more }),
    });
  }
  await testbed.end(worker);
  return {
    row: 'leases',
    backend: contender.name,
    points,
    ...(endsBecause !== undefined && { endsBecause }),
  };
}

function tooLong(expectedMs: number, size: number, limitMs: number): string | undefined {
  if (expectedMs <= limitMs) return undefined;
  return `${size.toLocaleString('en').replaceAll(',', ' ')} would take ${Math.round(expectedMs / 1_000)} s`;
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

/** Only curves that have two points or more, and points above 0: both axes are logarithmic. */
function chartOf(
  id: string,
  title: string,
  curves: readonly Curve[],
  figure: (point: Point) => number | undefined,
  digits: number,
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
  const along = id.startsWith('waiters') ? 'waiters' : 'leases';
  return { chart: { kind: 'growth', id, title, unit, better: 'less', digits, along, curves: drawn } };
}

function sectionsOf({ curves, settings }: GrowthReport): Section[] {
  const table = (
    id: string,
    row: string,
    sizes: readonly number[],
    title: string,
    figure: (point: Point) => number | undefined,
    digits: number,
  ): Section[] => {
    const of = curves.filter((curve) => curve.row === row);
    if (of.length === 0 || sizes.length === 0) return [];
    const lines = of.map(({ backend, points }) => [
      backend,
      ...sizes.map((size) => {
        const point = points.find((one) => one.size === size);
        const value = point && figure(point);
        return value === undefined ? '' : value.toFixed(digits);
      }),
    ]);
    return [
      {
        title,
        ...chartOf(id, title, of, figure, digits),
        table: {
          heading: ['', ...sizes.map((size) => size.toLocaleString('en').replaceAll(',', ' '))],
          lines,
        },
      },
    ];
  };
  const large = (sizes: readonly number[]): readonly number[] =>
    sizes.filter((size) => size >= LEAST_FOR_BYTES);
  const { waiters, leases } = settings;
  return [
    ...table(
      'waiters-queue',
      'waiters',
      waiters,
      'Waiters of one lock: µs for each to queue',
      (point) => point.microsEach,
      0,
    ),
    ...table(
      'waiters-enter',
      'waiters',
      waiters,
      'Waiters of one lock: µs for each to enter and leave, in turn',
      (point) => point.handOffMicros,
      0,
    ),
    ...table(
      'waiters-delay',
      'waiters',
      waiters,
      'Waiters of one lock: ms for which the event loop stood still at most while they queued',
      (point) => point.loopDelayMs,
      0,
    ),
    ...table(
      'waiters-heap',
      'waiters',
      large(waiters),
      'Waiters of one lock: bytes of the client’s heap for each',
      (point) => point.clientBytesEach,
      0,
    ),
    ...table(
      'leases-acquire',
      'leases',
      leases,
      'Leases held: µs to acquire each more, 64 at once',
      (point) => point.microsEach,
      0,
    ),
    ...table(
      'leases-heap',
      'leases',
      large(leases),
      'Leases held: bytes of the client’s heap for each',
      (point) => point.clientBytesEach,
      0,
    ),
    ...table(
      'leases-store',
      'leases',
      large(leases),
      'Leases held: bytes for each at the store (PostgreSQL, SQLite: on disk)',
      (point) => point.serverBytesEach,
      0,
    ),
  ];
}
