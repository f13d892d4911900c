export { redisBackend, type ValkeyGlideClient } from './redis-backend.ts';
export { functionLibrary } from '@locks/redis-protocol';
export { fencedSet } from './fenced-set.ts';
export { redisSlots, redisResults } from './slot-store.ts';
export type {
  FencedSetOptions,
  RedisBackendOptions,
  RedisCapabilities,
  RedisSlotsOptions,
} from '@locks/redis-protocol';
