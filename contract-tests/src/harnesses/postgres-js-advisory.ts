import { postgresAdvisoryBackend } from '@locks/postgres/postgres-js';
import postgres from 'postgres';
import { ADVISORY_OPTIONS, postgresAdvisoryHarness } from './postgres/advisory-harness.ts';

/** Advisory locks by postgres.js. */
export default postgresAdvisoryHarness(import.meta.url, 'postgres-js-advisory', (url) =>
  postgresAdvisoryBackend(postgres(url), ADVISORY_OPTIONS),
);
