import { redissonHarness } from './redis/redisson-harness.ts';

/** The locks of `getFencedLock`, on ioredis. */
export default redissonHarness({
  module: import.meta.url,
  name: 'redisson-fenced',
  library: 'redis-ioredis',
  topology: 'standalone',
  fencing: true,
});
