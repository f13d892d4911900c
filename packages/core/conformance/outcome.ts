/** The five outcomes of a case. They are never mixed: a case that did not run has not passed. */
export type Outcome = 'passed' | 'failed' | 'not-applicable' | 'untested' | 'waived';

/** What came of one case. */
export interface CaseResult {
  /** The id of the case: `group/what-holds`. */
  readonly id: string;
  /** What came of it. */
  readonly outcome: Outcome;
  /** Why the case did not pass. */
  readonly reason?: string;
  /** How many milliseconds it took. */
  readonly ms: number;
  /** What the case rejected with. */
  readonly error?: unknown;
}

/** The report of a run, in `conformance-report/<backend>.json`. */
export interface ConformanceReport {
  /** The version of this format. */
  readonly schema: 1;
  /** The name of the backend, or of the harness. */
  readonly backend: string;
  /** The server and its version. */
  readonly server: string;
  /** How the server is set up: `standalone`, `cluster`. */
  readonly topology: string;
  /** What ran the suite: `vitest`, `node:test`; `none` for `runSuite`. */
  readonly runner: string;
  /** What the backend declares. */
  readonly capabilities: unknown;
  /** What random numbers began with. */
  readonly seed: number;
  /** Every case. */
  readonly cases: readonly Omit<CaseResult, 'error'>[];
}
