import type { Contender } from './contender.ts';
import { postgresAdvisory, postgresLease } from './locks-postgres.ts';
import { rawPostgresAdvisory, rawPostgresLease } from './raw-postgres.ts';
import { verrouKnex } from './verrou-knex.ts';

export const postgresContenders: readonly Contender[] = [
  rawPostgresLease,
  postgresLease,
  verrouKnex,
  rawPostgresAdvisory,
  postgresAdvisory,
];
