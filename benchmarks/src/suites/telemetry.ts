import { createLocks, type FencedLockManager } from '@locks/core';
import { lintLocks } from '@locks/core/lint';
import { memoryBackend } from '@locks/memory';
import { meterLocks, traceLocks } from '@locks/opentelemetry';
import { context, createNoopMeter, type MeterProvider as ApiMeterProvider } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { NoopSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { describeMachine } from '../measure/machine.ts';
import { median } from '../measure/quantiles.ts';

const PAIRS = 20_000;
const ROUNDS = 25;
/** What `npm run bench -- telemetry --check` allows metrics to add to a pair. */
const MOST_MICROSECONDS = 2;

interface Way {
  readonly name: string;
  /** Subscribes, and gives what ends that. */
  readonly begin: () => () => void;
}

/** `bench telemetry`: what an acquire and its release cost with and without telemetry, in memory. Gives the exit code. */
export async function telemetrySuite(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: { check: { type: 'boolean' }, json: { type: 'string' } },
  });
  const provider = new MeterProvider({
    readers: [
      new PeriodicExportingMetricReader({
        exporter: new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE),
        exportIntervalMillis: 600_000,
      }),
    ],
  });
  // What the package itself costs: these instruments do nothing.
  const noSdk: ApiMeterProvider = { getMeter: createNoopMeter };
  const tracerProvider = new TracerProvider({ spanProcessors: [new NoopSpanProcessor()] });
  const ways: readonly Way[] = [
    { name: 'nobody subscribes', begin: () => () => {} },
    { name: 'nobody subscribes, again', begin: () => () => {} },
    { name: 'metrics, to no SDK', begin: () => meterLocks({ meterProvider: noSdk }) },
    { name: 'metrics', begin: () => meterLocks({ meterProvider: provider }) },
    { name: 'lint', begin: () => lintLocks() },
    { name: 'spans', begin: () => traceLocks({ tracerProvider }) },
  ];
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const figures = await measure(ways);
  await provider.shutdown();
  const base = figures.get('nobody subscribes') ?? Number.NaN;
  const machine = describeMachine();
  console.log(`${machine.cpu}, ${machine.cores} cores, Node ${process.version}, load ${machine.load}`);
  console.log('µs of processor time for an acquire and its release, the median of rounds, and what it adds:');
  for (const [name, microseconds] of figures) {
    console.log(`${name.padEnd(26)} ${microseconds.toFixed(2)}  ${(microseconds - base).toFixed(2)}`);
  }
  if (values.json !== undefined)
    writeFileSync(values.json, JSON.stringify({ machine, figures: Object.fromEntries(figures) }));
  const added = (figures.get('metrics') ?? Number.NaN) - base;
  if (values.check !== true || added <= MOST_MICROSECONDS) return 0;
  console.error(`Metrics add ${added.toFixed(2)} µs, more than ${MOST_MICROSECONDS} µs.`);
  return 1;
}

/** The median of each way, in rounds that take turns: what else runs on the machine meets them all. */
async function measure(ways: readonly Way[]): Promise<ReadonlyMap<string, number>> {
  const locks = createLocks(memoryBackend());
  const rounds = new Map<string, number[]>(ways.map(({ name }) => [name, []]));
  // One round more than is counted: compiled code, and series that exist.
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const { name, begin } of ways) {
      const stop = begin();
      const microseconds = await timePairs(locks);
      stop();
      if (round > 0) rounds.get(name)?.push(microseconds);
    }
  }
  await locks.close();
  return new Map([...rounds].map(([name, all]) => [name, median(all)]));
}

async function timePairs(locks: FencedLockManager): Promise<number> {
  const lock = locks.lock('sku:42');
  const start = process.cpuUsage();
  for (let pair = 0; pair < PAIRS; pair += 1) {
    const lease = await lock.acquire();
    await lease.release();
  }
  const { user, system } = process.cpuUsage(start);
  return (user + system) / PAIRS;
}
