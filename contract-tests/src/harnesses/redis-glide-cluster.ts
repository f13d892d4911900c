import { redisHarness } from './redis/redis-harness.ts';

/** Valkey GLIDE on a cluster. */
export default redisHarness(import.meta.url, 'redis-glide', 'cluster');
