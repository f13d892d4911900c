export { upstashBackend, type UpstashBackendOptions } from './upstash-backend.ts';
export { fencedSet } from './fenced-set.ts';
export { upstashSlots, upstashResults } from './slot-store.ts';
export type { UpstashConnection } from './connection.ts';
export type { FencedSetOptions, RedisCapabilities, RedisSlotsOptions } from '@locks/redis-protocol';
