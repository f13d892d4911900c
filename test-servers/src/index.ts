export { findServer } from './find-server.mjs';
export { freePort, isFree } from './free-port.ts';
export { type Direction, type FaultScope, type LoseOptions, Proxy, startProxy } from './proxy/proxy.ts';
export type { ProxyConnection, ProxyRequest } from './proxy/proxy-connection.ts';
export { RedisServer } from './redis/redis-server.ts';
export { RedisReplyError, type Reply } from './redis/resp.ts';
export { type RedisAddress, sendCommands } from './redis/send-command.ts';
export { type RedisOptions, type ReplicatedRedis, startRedis, startReplicated } from './redis/start-redis.ts';
export { type WaitOptions, waitUntil } from './wait-until.ts';
