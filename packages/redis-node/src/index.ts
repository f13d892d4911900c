export { redisBackend, type NodeRedisClient } from './redis-backend.ts';
export type { RedisBackendOptions, RedisCapabilities } from '@locks/redis-protocol';
