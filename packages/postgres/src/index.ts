export { advisoryKey } from './advisory/advisory-key.ts';
export {
  postgresAdvisoryBackend,
  type PostgresAdvisoryCapabilities,
} from './advisory/advisory-backend.ts';
export type { PostgresAdvisoryOptions } from './advisory/options.ts';
