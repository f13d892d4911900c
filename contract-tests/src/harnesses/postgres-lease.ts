import { postgresLeaseHarness } from './postgres/lease-harness.ts';

/** The lease table, with a listener of its own. */
export default postgresLeaseHarness(import.meta.url);
