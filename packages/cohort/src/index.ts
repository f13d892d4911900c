export { cohortBackend, type CohortBackend } from './cohort-backend.ts';
export type { CohortCapabilities } from './cohort-capabilities.ts';
export type { CohortOptions } from './cohort-options.ts';
