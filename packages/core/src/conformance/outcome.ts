/** The five outcomes of a case. They are never mixed: what did not run is not a pass. */
export type Outcome = 'passed' | 'failed' | 'not-applicable' | 'untested' | 'waived';

export interface CaseResult {
  readonly id: string;
  readonly outcome: Outcome;
  /** Why it did not pass. */
  readonly reason?: string;
  readonly ms: number;
  readonly error?: unknown;
}

/** What a run writes to `conformance-report/<backend>.json`. */
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
