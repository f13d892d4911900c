import { createLocks } from '@locks/core';
import { redisBackend as ioredisBackend } from '@locks/redis-ioredis';
import { redisBackend as nodeRedisBackend } from '@locks/redis-node';
import { connectIoredis, connectNodeRedis } from './connect.ts';
import type { Contender, OpenLocks } from './contender.ts';
import { oursContender } from './locks.ts';

export async function openLocksOnIoredis(url: string, ttlMs: number): Promise<OpenLocks> {
  const client = await connectIoredis(url);
  const locks = createLocks(ioredisBackend(client), { ttlMs });
  return {
    locks,
    ping: () => client.ping(),
    close: async () => {
      await locks.close();
      client.disconnect();
    },
  };
}

export async function openLocksOnNodeRedis(url: string, ttlMs: number): Promise<OpenLocks> {
  const client = await connectNodeRedis(url);
  const locks = createLocks(nodeRedisBackend(client), { ttlMs });
  return {
    locks,
    ping: () => client.ping(),
    close: async () => {
      await locks.close();
      client.destroy();
    },
  };
}

export const locksRedisIoredis: Contender = oursContender({
  store: 'redis',
  name: '@locks/redis-ioredis',
  floor: 'raw ioredis',
  packages: ['@locks/redis-ioredis', 'ioredis'],
  openLocks: openLocksOnIoredis,
});

export const locksRedisNode: Contender = oursContender({
  store: 'redis',
  name: '@locks/redis-node',
  floor: 'raw node-redis',
  packages: ['@locks/redis-node', 'redis'],
  openLocks: openLocksOnNodeRedis,
});
