import { redisHarness } from './redis/redis-harness.ts';

/** Valkey GLIDE. */
export default redisHarness(import.meta.url, 'redis-glide', 'standalone');
