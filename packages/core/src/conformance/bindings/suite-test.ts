import type { ConformanceCase } from '../case.ts';
import { conformanceCases } from '../cases/index.ts';
import type { Harness } from '../harness.ts';
import type { CaseResult } from '../outcome.ts';
import { runCase } from '../run-case.ts';
import { freshSeed, reportOf, startHarness } from '../run-suite.ts';
import { amendReport, writeReport } from './report-file.ts';

export interface BindingOptions {
  /** Where the JSON report goes. @defaultValue 'conformance-report' */
  readonly reportDirectory?: string;
  /** @defaultValue a random one, printed with every failure */
  readonly seed?: number;
}

/** One run of the suite as tests of a runner: all of a binding that does not depend on the runner. */
export class SuiteTest {
  readonly #harness: Harness;
  readonly #options: BindingOptions;
  readonly #seed: number;
  readonly #results: CaseResult[] = [];
  #started: { teardown(): Promise<void> } | undefined;

  constructor(harness: Harness, options: BindingOptions) {
    this.#harness = harness;
    this.#options = options;
    this.#seed = options.seed ?? freshSeed();
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

  /** Runs a case; throws where it failed or stayed untested, and tells `skip` where it does not apply. */
  async run(testCase: ConformanceCase, skip: (reason: string) => void): Promise<void> {
    const result = await runCase(testCase, this.#harness, this.#seed);
    this.#results.push(result);
    if (result.outcome === 'failed') throw result.error;
    if (result.outcome === 'untested') throw new Error(`untested: ${result.reason}`);
    if (result.outcome !== 'passed') skip(`${result.outcome}: ${result.reason}`);
  }

  async end(runner: string): Promise<void> {
    const report = await reportOf(this.#harness, this.#results, this.#seed, runner);
    const directory = this.#options.reportDirectory ?? 'conformance-report';
    // What the runner was told to leave out keeps the outcome that it had.
    if (this.#results.length === conformanceCases.length) writeReport(report, directory);
    else amendReport(report, directory);
    await this.#started?.teardown();
  }
}
