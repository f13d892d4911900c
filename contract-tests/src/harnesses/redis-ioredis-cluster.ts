import { redisHarness } from './redis/redis-harness.ts';

/** ioredis on a cluster. */
export default redisHarness(import.meta.url, 'redis-ioredis', 'cluster');
