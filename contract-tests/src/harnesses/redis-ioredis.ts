import { redisHarness } from './redis/redis-harness.ts';

/** ioredis. */
export default redisHarness(import.meta.url, 'redis-ioredis', 'standalone');
