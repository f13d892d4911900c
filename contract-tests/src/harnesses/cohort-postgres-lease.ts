import { withCohorts } from './connections/with-cohorts.ts';
import { postgresLeaseHarness } from './postgres/lease-harness.ts';

/** Cohorts over the lease table. */
export default withCohorts(import.meta.url, 'cohort-postgres-lease', postgresLeaseHarness(import.meta.url));
