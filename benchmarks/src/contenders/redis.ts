import type { Contender } from './contender.ts';
import { locksRedisIoredis, locksRedisNode } from './locks-redis.ts';
import { rawIoredis, rawIoredis5 } from './raw-ioredis.ts';
import { rawNodeRedis } from './raw-node-redis.ts';
import { redisSemaphore } from './redis-semaphore.ts';
import { redlockDefault, redlockFast } from './redlock.ts';
import { redlockUniversal } from './redlock-universal.ts';
import { simpleRedisMutex } from './simple-redis-mutex.ts';
import { verrou } from './verrou.ts';

export const redisContenders: readonly Contender[] = [
  rawIoredis,
  locksRedisIoredis,
  redisSemaphore,
  redlockUniversal,
  rawIoredis5,
  redlockDefault,
  redlockFast,
  verrou,
  rawNodeRedis,
  locksRedisNode,
  simpleRedisMutex,
];
