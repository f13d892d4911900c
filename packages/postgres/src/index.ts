export {
  migrateLeaseSchema,
  postgresAdvisoryBackend,
  type PostgresAdvisoryOptions,
  postgresLeaseBackend,
  type PostgresLeaseOptions,
} from './pg/backends.ts';
export type { DatabaseSource } from './pg/database-source.ts';
export * from './every-driver.ts';
