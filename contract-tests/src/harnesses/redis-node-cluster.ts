import { redisHarness } from './redis/redis-harness.ts';

/** node-redis on a cluster. */
export default redisHarness(import.meta.url, 'redis-node', 'cluster');
