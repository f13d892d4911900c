export { createRedisBackend, type RedisCapabilities } from './backend.ts';
export { functionLibrary } from './functions.ts';
export { LoginWatch } from './login-watch.ts';
export { type RedisBackendOptions } from './options.ts';
export { readPrefix } from './keys.ts';
export { tagOf } from './slot.ts';
export { portPerClient } from './port-per-client.ts';
export type {
  NodeSender,
  ChannelConnection,
  ChannelEvents,
  RedisCommand,
  RedisPort,
  ShardSubscriptionEvents,
  SideConnection,
  SubscriptionEvents,
} from './port.ts';
export { fencedSetThrough, type FencedSetOptions } from './fenced-set.ts';
export { redisSlotsThrough, redisResultsThrough, type RedisSlotsOptions } from './slot-store.ts';
