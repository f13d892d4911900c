import { postgresAdvisoryBackend } from '@locks/postgres';
import { ADVISORY_OPTIONS, postgresAdvisoryHarness } from './postgres/advisory-harness.ts';

export default postgresAdvisoryHarness(import.meta.url, 'postgres-advisory', (connectionString) =>
  postgresAdvisoryBackend(connectionString, ADVISORY_OPTIONS),
);
