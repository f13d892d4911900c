export { clockDifference } from './clock-difference.ts';
export type { Diagnosis, Finding, Severity } from './diagnosis.ts';
export { type Failure, failureOf } from './failure.ts';
export { error, found, unknown, warning } from './finding.ts';
export { layoutFinding } from './layout-finding.ts';
export { oldVersion, type ServerVersions } from './old-version.ts';
