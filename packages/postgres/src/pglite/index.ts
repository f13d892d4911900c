export {
  migrateLeaseSchema,
  type PgliteLeaseCapabilities,
  type PgliteLeaseOptions,
  type PgliteSource,
  postgresLeaseBackend,
} from './backends.ts';
export * from '../every-driver.ts';
