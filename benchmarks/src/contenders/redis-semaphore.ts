import { Mutex } from 'redis-semaphore';
import { connectIoredis } from './connect.ts';
import { type Contender, TTL_MS } from './contender.ts';

/** Polls every 10 ms by default. */
export const redisSemaphore: Contender = {
  store: 'redis',
  name: 'redis-semaphore',
  kind: 'peer',
  floor: 'raw ioredis',
  packages: ['redis-semaphore', 'ioredis'],
  async open(url) {
    const client = await connectIoredis(url);
    return {
      async acquire(name) {
        const mutex = new Mutex(client, name, {
          lockTimeout: TTL_MS,
          acquireTimeout: Number.POSITIVE_INFINITY,
        });
        await mutex.acquire();
        return () => mutex.release();
      },
      ping: () => client.ping(),
      close: async () => client.disconnect(),
    };
  },
};
