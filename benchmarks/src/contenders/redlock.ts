import Redlock, { type Settings } from 'redlock';
import { connectIoredis5 } from './connect.ts';
import { type Contender, POLL_MS, TTL_MS } from './contender.ts';

// The default is to give up after 10 attempts; without a limit every waiter is served in the end.
const patient = { retryCount: -1 };

/** Polls every 200 ± 100 ms by default. */
export const redlockDefault = redlock('redlock', patient);

export const redlockFast = redlock(`redlock ${POLL_MS} ms`, {
  ...patient,
  retryDelay: POLL_MS,
  retryJitter: 0,
});

function redlock(name: string, settings: Partial<Settings>): Contender {
  return {
    store: 'redis',
    name,
    kind: 'peer',
    floor: 'raw ioredis 5',
    packages: ['redlock', 'ioredis5'],
    async open(url) {
      const client = await connectIoredis5(url);
      const library = new Redlock([client], settings);
      return {
        async acquire(resource) {
          const lock = await library.acquire([resource], TTL_MS);
          return () => lock.release();
        },
        ping: () => client.ping(),
        close: async () => client.disconnect(),
      };
    },
  };
}
