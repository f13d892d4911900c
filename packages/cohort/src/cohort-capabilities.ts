import type { BackendCapabilities, BackendFeature } from '@locks/core/backend';
import type { CohortLimits } from './cohort-options.ts';

/** The capabilities of a cohort backend: those of its backend, in the order of cohorts. */
export interface CohortCapabilities extends BackendCapabilities {
  readonly order: 'cohort';
  readonly cohort: CohortLimits;
}

/** The features that a store has no part in where it knows one waiter of each process. */
const NOT_OF_COHORTS: ReadonlySet<BackendFeature> = new Set(['waiters', 'transfer', 'max-waiters']);

/**
 * The feature `waiters` is left out: the store knows only one waiter of each process. So is `max-waiters`, and `transfer`: a lease of the store
 * serves others of the process too.
 */
export function capabilitiesOf(inner: BackendCapabilities, limits: CohortLimits): CohortCapabilities {
  const features = inner.features.filter((feature) => !NOT_OF_COHORTS.has(feature));
  return { ...inner, order: 'cohort', cohort: limits, features };
}
