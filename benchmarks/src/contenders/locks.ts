import { createLocks, type LockManager } from '@locks/core';
import { redisBackend as ioredisBackend } from '@locks/redis-ioredis';
import { redisBackend as nodeRedisBackend } from '@locks/redis-node';
import { connectIoredis, connectNodeRedis } from './connect.ts';
import { type Contender, type Session, TTL_MS } from './contender.ts';

export interface OpenLocks {
  readonly locks: LockManager;
  ping(): Promise<unknown>;
  close(): Promise<void>;
}

export async function openLocksOnIoredis(url: string, ttlMs = TTL_MS): Promise<OpenLocks> {
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

export async function openLocksOnNodeRedis(url: string, ttlMs = TTL_MS): Promise<OpenLocks> {
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

const waitForever = { waitMs: Number.POSITIVE_INFINITY };

function sessionOf({ locks, ping, close }: OpenLocks): Session {
  return {
    async acquire(name) {
      const lease = await locks.lock(name).acquire(waitForever);
      return () => lease.release();
    },
    ping,
    close,
  };
}

export const locksRedisIoredis: Contender = {
  name: '@locks/redis-ioredis',
  kind: 'ours',
  floor: 'raw ioredis',
  packages: ['@locks/core', '@locks/redis-ioredis', 'ioredis'],
  open: async (url) => sessionOf(await openLocksOnIoredis(url)),
};

export const locksRedisNode: Contender = {
  name: '@locks/redis-node',
  kind: 'ours',
  floor: 'raw node-redis',
  packages: ['@locks/core', '@locks/redis-node', 'redis'],
  open: async (url) => sessionOf(await openLocksOnNodeRedis(url)),
};
