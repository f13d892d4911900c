import { postgresLeaseHarness } from './postgres/lease-harness.ts';

/** The lease table through PgBouncer in transaction mode; the listener past it. */
export default postgresLeaseHarness(import.meta.url, {
  name: 'postgres-lease-pgbouncer',
  pgbouncer: true,
});
