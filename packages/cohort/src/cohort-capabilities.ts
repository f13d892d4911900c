import type { BackendCapabilities } from '@locks/core/backend';
import type { CohortLimits } from './cohort-options.ts';

/** The capabilities of a cohort backend: those of its backend, in the order of cohorts. */
export interface CohortCapabilities extends BackendCapabilities {
  readonly order: 'cohort';
  readonly cohort: CohortLimits;
}

/**
 * The feature `waiters` is left out: the store knows only one waiter of each process. So is `hand-over`: a lease of the store
 * serves others of the process too.
 */
export function capabilitiesOf(inner: BackendCapabilities, limits: CohortLimits): CohortCapabilities {
  const features = inner.features.filter((feature) => feature !== 'waiters' && feature !== 'hand-over');
  return { ...inner, order: 'cohort', cohort: limits, features };
}
