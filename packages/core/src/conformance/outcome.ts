/** The five outcomes of a case. They are never mixed: a case that did not run has not passed. */
export type Outcome = 'passed' | 'failed' | 'not-applicable' | 'untested' | 'waived';

/** What came of one case. */
export interface CaseResult {
  readonly id: string;
  readonly outcome: Outcome;
  /** Why the case did not pass. */
  readonly reason?: string;
  readonly ms: number;
  readonly error?: unknown;
}

/** The report of a run, in `conformance-report/<backend>.json`. */
export interface ConformanceReport {
  readonly schema: 1;
  readonly backend: string;
  readonly server: string;
  readonly topology: string;
  readonly runner: string;
  readonly capabilities: unknown;
  readonly seed: number;
  readonly cases: readonly Omit<CaseResult, 'error'>[];
}
