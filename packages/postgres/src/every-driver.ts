export { advisoryKey } from './advisory/advisory-key.ts';
export type { PostgresAdvisoryCapabilities } from './advisory/advisory-backend.ts';
export type { PostgresAdvisoryOptions } from './advisory/options.ts';
export type { PostgresLeaseCapabilities } from './lease/lease-backend.ts';
export type { PostgresLeaseOptions } from './lease/options.ts';
export { schemaStatements, type PostgresSchemaError, type PostgresSchemaErrorCode } from './lease/schema.ts';
export { postgresSlots, type PostgresSlotsOptions } from './once/slot-store.ts';
export { postgresResults, type PostgresResultsOptions } from './once/result-store.ts';
export { fencedUpdate, type FencedUpdate } from './fenced/fenced-update.ts';
export {
  advisoryLockInTransaction,
  type TransactionLockOptions,
  type TransactionWaitOptions,
  tryAdvisoryLockInTransaction,
} from './transaction/advisory-lock-in-transaction.ts';
export type { SqlClient, SqlExecutor } from './transaction/sql-client.ts';
