export {
  type PgliteLeaseCapabilities,
  type PgliteLeaseOptions,
  postgresLeaseBackend,
} from './backends.ts';
export * from '../every-driver.ts';
