import { redissonHarness } from './redis/redisson-harness.ts';

/** The locks of `getFencedLock` in a cluster, on ioredis. */
export default redissonHarness({
  module: import.meta.url,
  name: 'redisson-cluster',
  library: 'redis-ioredis',
  topology: 'cluster',
  fencing: true,
});
