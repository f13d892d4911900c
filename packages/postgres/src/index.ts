export { advisoryKey } from './advisory/advisory-key.ts';
export {
  postgresAdvisoryBackend,
  type PostgresAdvisoryCapabilities,
} from './advisory/advisory-backend.ts';
export type { PostgresAdvisoryOptions } from './advisory/options.ts';
export {
  postgresLeaseBackend,
  type PostgresLeaseCapabilities,
} from './lease/lease-backend.ts';
export type { PostgresLeaseOptions } from './lease/options.ts';
export {
  leaseSchemaSql,
  migrateLeaseSchema,
  PostgresSchemaError,
  type PostgresSchemaErrorCode,
} from './lease/schema.ts';
export type { DatabaseSource } from './pool/database-source.ts';
export { fencedUpdate, type FencedUpdate } from './fenced/fenced-update.ts';
export {
  advisoryLockInTransaction,
  type TransactionLockOptions,
  type TransactionWaitOptions,
  tryAdvisoryLockInTransaction,
} from './transaction/advisory-lock-in-transaction.ts';
export type { SqlClient, SqlExecutor } from './transaction/sql-client.ts';
