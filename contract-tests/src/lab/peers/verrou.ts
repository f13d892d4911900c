import { Verrou } from '@verrou/core';
import { redisStore } from '@verrou/core/drivers/redis';
import type { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { expiring, type OpenPeer } from './peer-lock.ts';

export const open: OpenPeer = ({ host, port }, ttlMs) => {
  const client = new Redis5({ host, port });
  client.on('error', () => undefined);
  // The library's types resolve to the ioredis of this package, which is version 6.
  const driver = redisStore({ connection: client as unknown as Redis });
  const library = new Verrou({ default: 'redis', stores: { redis: { driver } } });
  return async (name, waitMs) => {
    const lock = library.createLock(name, ttlMs);
    if (!(await lock.acquire({ retry: { timeout: waitMs } }))) return undefined;
    return expiring(
      () => lock.getRemainingTime() ?? 0,
      () => lock.release(),
    );
  };
};
