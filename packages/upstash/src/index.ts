export { upstashBackend, type UpstashBackendOptions } from './upstash-backend.ts';
export { fencedSet } from './fenced-set.ts';
export type { UpstashConnection } from './connection.ts';
export type { FencedSetOptions, RedisCapabilities } from '@locks/redis-protocol';
