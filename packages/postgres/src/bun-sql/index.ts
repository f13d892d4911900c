export {
  type BunLeaseOptions,
  postgresLeaseBackend,
} from './backends.ts';
export type { BunSql } from './bun-connection.ts';
export * from '../every-driver.ts';
