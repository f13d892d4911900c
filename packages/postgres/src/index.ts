export {
  postgresAdvisoryBackend,
  postgresLeaseBackend,
} from './pg/backends.ts';
export type { DatabaseSource } from './pg/database-source.ts';
export * from './every-driver.ts';
