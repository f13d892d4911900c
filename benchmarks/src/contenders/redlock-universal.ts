import { createLock, IoredisAdapter } from 'redlock-universal';
import { connectIoredis } from './connect.ts';
import { type Contender, TTL_MS } from './contender.ts';

/** Polls every 100 ms by default. */
export const redlockUniversal: Contender = {
  store: 'redis',
  name: 'redlock-universal',
  kind: 'peer',
  floor: 'raw ioredis',
  packages: ['redlock-universal', 'ioredis'],
  async open(url) {
    const client = await connectIoredis(url);
    const adapter = new IoredisAdapter(client);
    return {
      async acquire(name) {
        // The default is to give up after 3 attempts; this many serve every waiter in the end.
        const lock = createLock({ adapter, key: name, ttl: TTL_MS, retryAttempts: 1_000_000 });
        const handle = await lock.acquire();
        return () => lock.release(handle);
      },
      ping: () => client.ping(),
      close: async () => client.disconnect(),
    };
  },
};
