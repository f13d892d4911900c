export { createRedissonBackend } from './redisson-backend.ts';
export type { RedissonCapabilities } from './capabilities.ts';
export type { RedissonBackendOptions } from './options.ts';
