import { redissonHarness } from './redis/redisson-harness.ts';

/** The locks of `getFencedLock`, on node-redis. */
export default redissonHarness({
  module: import.meta.url,
  name: 'redisson-node',
  library: 'redis-node',
  topology: 'standalone',
  fencing: true,
});
