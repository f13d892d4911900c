export {
  migrateLeaseSchema,
  postgresAdvisoryBackend,
  type PostgresAdvisoryOptions,
  postgresLeaseBackend,
  type PostgresLeaseOptions,
  type SqlSource,
} from './backends.ts';
export * from '../every-driver.ts';
