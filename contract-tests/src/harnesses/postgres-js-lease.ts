import { onPostgresJs, postgresLeaseHarness } from './postgres/lease-harness.ts';

/** The lease table by postgres.js. */
export default postgresLeaseHarness(import.meta.url, { name: 'postgres-js-lease', library: onPostgresJs });
