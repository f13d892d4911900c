import { redissonHarness } from './redis/redisson-harness.ts';

/** The locks of `getLock`, on node-redis with Sentinel: its client keeps the connection for subscriptions. */
export default redissonHarness({
  module: import.meta.url,
  name: 'redisson-node-sentinel',
  library: 'redis-node',
  topology: 'sentinel',
});
