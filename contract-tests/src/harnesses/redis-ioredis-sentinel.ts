import { redisHarness } from './redis/redis-harness.ts';

/** ioredis through Sentinel. */
export default redisHarness(import.meta.url, 'redis-ioredis', 'sentinel');
