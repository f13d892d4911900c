export { redisBackend, type ValkeyGlideClient } from './redis-backend.ts';
export { functionLibrary } from '@locks/redis-protocol';
export { fencedSet } from './fenced-set.ts';
export { redisRecord, redisResults } from './once-record.ts';
export type {
  FencedSetOptions,
  RedisBackendOptions,
  RedisCapabilities,
  RedisRecordOptions,
} from '@locks/redis-protocol';
