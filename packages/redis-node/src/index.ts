export { redisBackend, type NodeRedisClient } from './redis-backend.ts';
export { functionLibrary } from '@locks/redis-protocol';
export { fencedSet } from './fenced-set.ts';
export type { FencedSetOptions, RedisBackendOptions, RedisCapabilities } from '@locks/redis-protocol';
