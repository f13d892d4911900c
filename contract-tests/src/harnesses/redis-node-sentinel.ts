import { redisHarness } from './redis/redis-harness.ts';

/** node-redis through Sentinel. */
export default redisHarness(import.meta.url, 'redis-node', 'sentinel');
