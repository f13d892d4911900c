import { withCohorts } from './connections/with-cohorts.ts';
import { redisHarness } from './redis/redis-harness.ts';

/** Cohorts over Redis, through ioredis. */
export default withCohorts(
  import.meta.url,
  'cohort-redis-ioredis',
  redisHarness(import.meta.url, 'redis-ioredis', 'standalone'),
);
