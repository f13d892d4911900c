export { createRedisBackend, type RedisCapabilities } from './backend.ts';
export { type RedisBackendOptions } from './options.ts';
export type { RedisCommand, RedisPort, SideConnection, SubscriptionEvents } from './port.ts';
export { invalidArgument } from './invalid-argument.ts';
export { fencedSetThrough, type FencedSetOptions } from './fenced-set.ts';
