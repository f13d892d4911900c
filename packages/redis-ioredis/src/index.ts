export { redisBackend, type IoredisClient } from './redis-backend.ts';
export type { RedisBackendOptions, RedisCapabilities } from '@locks/redis-protocol';
