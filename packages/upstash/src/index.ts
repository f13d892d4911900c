export { upstashBackend, type UpstashBackendOptions } from './upstash-backend.ts';
export { fencedSet } from './fenced-set.ts';
export { upstashRecord, upstashResults } from './once-record.ts';
export type { UpstashConnection } from './connection.ts';
export type { FencedSetOptions, RedisCapabilities, RedisRecordOptions } from '@locks/redis-protocol';
