export {
  postgresAdvisoryBackend,
  postgresLeaseBackend,
} from './backends.ts';
export * from '../every-driver.ts';
