export type { ConformanceCase, Group, Missing } from './case.ts';
export { conformanceCases } from './cases/index.ts';
export { delegate, NoReply } from './delegate.ts';
export {
  defineHarness,
  type Faults,
  type Harness,
  type HarnessDefinition,
  harnessIn,
  type Timing,
  type Waiver,
  type Wire,
} from './harness.ts';
export { writeReport } from './bindings/report-file.ts';
export { warnIfKeptOpen } from './kept-open.ts';
export type { CaseResult, ConformanceReport, Outcome } from './outcome.ts';
export { runCase } from './run-case.ts';
export { freshSeed, reportOf, runConformance, startHarness, type SuiteOptions } from './run-suite.ts';
export { SafetyViolation } from './safety-violation.ts';
export type { Client, ClientOptions, CaseContext } from './case-context.ts';
