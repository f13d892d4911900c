export {
  type BunLeaseOptions,
  type BunSqlSource,
  migrateLeaseSchema,
  postgresLeaseBackend,
} from './backends.ts';
export type { BunSql } from './bun-connection.ts';
export * from '../every-driver.ts';
