import { optional, type OptionTable, readOptions, text } from '../../src/backend/read-options.ts';
import type { ConformanceCase } from '../case.ts';
import { conformanceCases } from '../cases/index.ts';
import type { Harness } from '../harness.ts';
import type { CaseResult } from '../outcome.ts';
import { runCase } from '../run-case.ts';
import { freshSeed, readSeed, reportOf, startHarness, warnOfEarlyFailure } from '../run-suite.ts';
import { amendReport, writeReport } from './report-file.ts';

/** How a test runner runs the suite. */
export interface BindingOptions {
  /** Where the JSON report goes. @defaultValue 'conformance-report' */
  readonly reportDirectory?: string;
  /** The number that all random choices of a run come from. @defaultValue a random one, printed with every failure */
  readonly seed?: number;
}

const TABLE = {
  reportDirectory: optional(text('a path', /./)),
  seed: readSeed,
} satisfies OptionTable<BindingOptions>;

/** One run of the suite as tests of a runner: the part of a binding that all runners share. */
export class SuiteTest {
  readonly #harness: Harness;
  readonly #options: BindingOptions;
  readonly #seed: number;
  readonly #results: CaseResult[] = [];
  #started: { teardown(): Promise<void> } | undefined;

  constructor(harness: Harness, options: BindingOptions | undefined) {
    const read = readOptions('testLockConformance()', options, TABLE);
    this.#harness = harness;
    this.#options = read;
    this.#seed = read.seed ?? freshSeed();
  }

  get title(): string {
    return `${this.#harness.name ?? 'lock'} conforms (seed ${this.#seed})`;
  }

  titleOf({ title, id, clause }: ConformanceCase): string {
    return `${title} (${id}, ${clause})`;
  }

  async start(): Promise<void> {
    this.#started = await startHarness(this.#harness);
  }

  /** Runs a case. Throws where it failed or stayed untested, and calls `skip` where it does not apply. */
  async run(testCase: ConformanceCase, skip: (reason: string) => void): Promise<void> {
    const result = await runCase(testCase, this.#harness, this.#seed);
    this.#results.push(result);
    warnOfEarlyFailure(testCase, result);
    if (result.outcome === 'failed') throw result.error;
    if (result.outcome === 'untested') throw new Error(`untested: ${result.reason}`);
    if (result.outcome !== 'passed') skip(`${result.outcome}: ${result.reason}`);
  }

  async end(runner: string): Promise<void> {
    const report = await reportOf(this.#harness, this.#results, this.#seed, runner);
    const directory = this.#options.reportDirectory ?? 'conformance-report';
    // Cases that the runner left out keep the outcomes of the last report.
    if (this.#results.length === conformanceCases.length) writeReport(report, directory);
    else amendReport(report, directory);
    await this.#started?.teardown();
  }
}
