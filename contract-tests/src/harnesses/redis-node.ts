import { redisHarness } from './redis/redis-harness.ts';

/** node-redis. */
export default redisHarness(import.meta.url, 'redis-node', 'standalone');
