import { lock } from 'simple-redis-mutex';
import { connectNodeRedis } from './connect.ts';
import { type Contender, TTL_MS } from './contender.ts';

/** Wakes all waiters by one global channel; its fencing token is that of a separate `INCR`. */
export const simpleRedisMutex: Contender = {
  store: 'redis',
  name: 'simple-redis-mutex',
  kind: 'peer',
  floor: 'raw node-redis',
  packages: ['simple-redis-mutex', 'redis'],
  async open(url) {
    const client = await connectNodeRedis(url);
    return {
      acquire: (name) => lock(client, name, { timeout: TTL_MS }),
      ping: () => client.ping(),
      close: async () => client.destroy(),
    };
  },
};
