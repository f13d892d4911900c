import { optional, type OptionTable, readOptions, wholeNumber } from '../src/backend/read-options.ts';
import type { ConformanceCase } from './case.ts';
import { conformanceCases } from './cases/index.ts';
import { childPoolOf } from './child/child-pool.ts';
import type { Harness } from './harness.ts';
import type { CaseResult, ConformanceReport } from './outcome.ts';
import { runCase } from './run-case.ts';

/** Which cases run, and how. */
export interface SuiteOptions {
  /** The ids of the cases to run. @defaultValue all */
  readonly only?: readonly string[] | undefined;
  /** How many cases run at a time. @defaultValue 8 */
  readonly concurrency?: number | undefined;
  /** The number that all random choices come from. @defaultValue a random one, which the report names */
  readonly seed?: number | undefined;
  /** For the report. @defaultValue 'none' */
  readonly runner?: string | undefined;
  /** Called after each case. */
  readonly onResult?: ((result: CaseResult) => void) | undefined;
}

const asGiven = (value: unknown): unknown => value;
export const readSeed = optional(wholeNumber(0, Number.MAX_SAFE_INTEGER));
const TABLE = {
  only: asGiven,
  concurrency: optional(wholeNumber(1, 10_000)),
  seed: readSeed,
  runner: asGiven,
  onResult: asGiven,
} satisfies OptionTable<SuiteOptions>;

/**
 * Runs the suite without a test runner, between `harness.setup` and its teardown.
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; what `setup` or `teardown` rejects with
 */
export async function runConformance(
  harness: Harness,
  options: SuiteOptions = {},
): Promise<ConformanceReport> {
  readOptions('runConformance()', options, TABLE);
  const started = await startHarness(harness);
  try {
    const seed = options.seed ?? freshSeed();
    const { only } = options;
    const cases = conformanceCases.filter(({ id }) => only === undefined || only.includes(id));
    const results = await runAll(cases, harness, seed, options);
    return await reportOf(harness, results, seed, options.runner ?? 'none');
  } finally {
    await started.teardown();
  }
}

type Part = readonly [cases: readonly ConformanceCase[], atOnce: number];

/** The cases in the order in which they run, and how many of them at a time. */
export function partsOf(
  cases: readonly ConformanceCase[],
  concurrency: number,
): readonly [first: Part, others: Part, alone: Part] {
  return [
    [cases.filter(({ first }) => first), concurrency],
    [cases.filter(({ first, alone }) => !first && !alone), concurrency],
    [cases.filter(({ alone }) => alone), 1],
  ];
}

/** Writes a failure to stderr at once that explains the failures and time-outs of many later cases. */
export function warnOfEarlyFailure({ first }: ConformanceCase, { id, outcome, reason }: CaseResult): void {
  if (first && outcome === 'failed')
    console.error(`${id} failed, and many other cases will fail or time out for it. ${reason}`);
}

/** A random seed for a run of the suite: a whole number from 0 to 2³¹ − 1. */
export function freshSeed(): number {
  return Math.floor(Math.random() * 2 ** 31);
}

/** Runs `harness.setup` and puts its environment in place. */
export async function startHarness(harness: Harness): Promise<{ teardown(): Promise<void> }> {
  const started = await harness.setup?.();
  Object.assign(process.env, started?.env);
  const teardown = async (): Promise<void> => {
    await childPoolOf(harness.module).end();
    await started?.teardown();
  };
  return { teardown };
}

/** The report of a run, with what the harness tells about its server. */
export async function reportOf(
  harness: Harness,
  results: readonly CaseResult[],
  seed: number,
  runner: string,
): Promise<ConformanceReport> {
  const backend = await harness.createBackend();
  const { name, capabilities } = backend;
  await backend.close();
  const cases = results
    .map(({ id, outcome, reason, ms }) => ({ id, outcome, ...(reason !== undefined && { reason }), ms }))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
  const { server = name, topology = 'standalone' } = harness;
  return { schema: 1, backend: harness.name ?? name, server, topology, runner, capabilities, seed, cases };
}

async function runAll(
  cases: readonly ConformanceCase[],
  harness: Harness,
  seed: number,
  { concurrency = 8, onResult }: SuiteOptions,
): Promise<CaseResult[]> {
  const results: CaseResult[] = [];
  for (const [part, atOnce] of partsOf(cases, concurrency)) await runSome(part, atOnce);
  return results;

  async function runSome(some: readonly ConformanceCase[], atOnce: number): Promise<void> {
    const queue = [...some];
    await Promise.all(Array.from({ length: atOnce }, () => work(queue)));
  }

  async function work(queue: ConformanceCase[]): Promise<void> {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const result = await runCase(next, harness, seed);
      results.push(result);
      warnOfEarlyFailure(next, result);
      onResult?.(result);
    }
  }
}
