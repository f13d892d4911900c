import { Verrou } from '@verrou/core';
import { redisStore } from '@verrou/core/drivers/redis';
import type { Redis } from 'ioredis';
import { connectIoredis5 } from './connect.ts';
import { type Contender, TTL_MS } from './contender.ts';

/** Polls every 250 ms by default, without end. It requires ioredis 5. */
export const verrou: Contender = {
  store: 'redis',
  name: '@verrou/core',
  kind: 'peer',
  floor: 'raw ioredis 5',
  packages: ['@verrou/core', 'ioredis5'],
  async open(url) {
    const client = await connectIoredis5(url);
    // The library's types resolve to the ioredis of this package, which is version 6.
    const driver = redisStore({ connection: client as unknown as Redis });
    const library = new Verrou({ default: 'redis', stores: { redis: { driver } } });
    return {
      async acquire(name) {
        const lock = library.createLock(name, TTL_MS);
        if (!(await lock.acquire())) throw new Error('verrou gave up');
        return () => lock.release();
      },
      ping: () => client.ping(),
      close: async () => client.disconnect(),
    };
  },
};
