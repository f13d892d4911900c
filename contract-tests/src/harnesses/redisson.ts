import { redissonHarness } from './redis/redisson-harness.ts';

/** The locks of `getLock`, on ioredis. */
export default redissonHarness({
  module: import.meta.url,
  name: 'redisson',
  library: 'redis-ioredis',
  topology: 'standalone',
});
