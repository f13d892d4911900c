import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Verrou } from '@verrou/core';
import { redisStore } from '@verrou/core/drivers/redis';
import type { Redis } from 'ioredis';
import { Mutex } from 'redis-semaphore';
import Redlock, { type Settings } from 'redlock';
import { createLock, IoredisAdapter } from 'redlock-universal';
import { lock as simpleLock } from 'simple-redis-mutex';
import { acquireVerrou } from './verrou.ts';
import { backends, ioredis, ioredis5, nodeRedis } from './clients.ts';
import { type Acquire, type Contender, foreign, ours, POLL_MS, TTL_MS } from './contender.ts';

const store = 'redis';

/** The release of the floor: compare and delete. */
const COMPARE_AND_DELETE =
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/** The part of ioredis that the floor uses, the same in versions 5 and 6. */
interface Ioredis {
  set(key: string, value: string, px: 'PX', ttlMs: number, nx: 'NX'): Promise<'OK' | null>;
  evalsha(sha1: string, keyCount: number, key: string, value: string): Promise<unknown>;
  script(load: 'LOAD', source: string): Promise<unknown>;
}

async function pollWithIoredis(client: Ioredis): Promise<Acquire> {
  const sha1 = String(await client.script('LOAD', COMPARE_AND_DELETE));
  return async (name) => {
    const id = randomUUID();
    while ((await client.set(name, id, 'PX', TTL_MS, 'NX')) === null) await delay(POLL_MS);
    return () => client.evalsha(sha1, 1, name, id);
  };
}

const set = { condition: 'NX', expiration: { type: 'PX', value: TTL_MS } } as const;

function redlock(name: string, settings: Partial<Settings> = {}): Contender {
  const what = { store, name, kind: 'peer', floor: 'raw ioredis 5', packages: ['redlock'] } as const;
  return foreign(what, ioredis5, (client) => {
    // The default is to give up after 10 attempts; without a limit every waiter is served in the end.
    const library = new Redlock([client], { retryCount: -1, ...settings });
    return async (resource) => {
      const lock = await library.acquire([resource], TTL_MS);
      return () => lock.release();
    };
  });
}

export const redisContenders: readonly Contender[] = [
  foreign({ store, name: 'raw ioredis', kind: 'floor' }, ioredis, (client) =>
    pollWithIoredis(client as Ioredis),
  ),
  ours({ store, name: '@locks/redis-ioredis', floor: 'raw ioredis' }, backends['redis-ioredis']),
  // Polls every 10 ms by default.
  foreign(
    { store, name: 'redis-semaphore', kind: 'peer', floor: 'raw ioredis', packages: ['redis-semaphore'] },
    ioredis,
    (client) => async (name) => {
      const options = { lockTimeout: TTL_MS, acquireTimeout: Number.POSITIVE_INFINITY };
      const mutex = new Mutex(client, name, options);
      await mutex.acquire();
      return () => mutex.release();
    },
  ),
  // Polls every 100 ms by default.
  foreign(
    { store, name: 'redlock-universal', kind: 'peer', floor: 'raw ioredis', packages: ['redlock-universal'] },
    ioredis,
    (client) => {
      const adapter = new IoredisAdapter(client);
      return async (name) => {
        // The default is to give up after 3 attempts; this many serve every waiter in the end.
        const lock = createLock({ adapter, key: name, ttl: TTL_MS, retryAttempts: 1_000_000 });
        const handle = await lock.acquire();
        return () => lock.release(handle);
      };
    },
  ),
  foreign({ store, name: 'raw ioredis 5', kind: 'floor' }, ioredis5, pollWithIoredis),
  // Polls every 200 ± 100 ms by default.
  redlock('redlock'),
  redlock(`redlock ${POLL_MS} ms`, { retryDelay: POLL_MS, retryJitter: 0 }),
  // Polls every 250 ms by default, without end. It requires ioredis 5.
  foreign(
    { store, name: '@verrou/core', kind: 'peer', floor: 'raw ioredis 5', packages: ['@verrou/core'] },
    ioredis5,
    (client) => {
      // The library's types resolve to the ioredis of this package, which is version 6.
      const driver = redisStore({ connection: client as unknown as Redis });
      return acquireVerrou(new Verrou({ default: 'redis', stores: { redis: { driver } } }));
    },
  ),
  foreign({ store, name: 'raw node-redis', kind: 'floor' }, nodeRedis, async (client) => {
    const sha1 = await client.scriptLoad(COMPARE_AND_DELETE);
    return async (name) => {
      const id = randomUUID();
      while ((await client.set(name, id, set)) === null) await delay(POLL_MS);
      return () => client.evalSha(sha1, { keys: [name], arguments: [id] });
    };
  }),
  ours({ store, name: '@locks/redis-node', floor: 'raw node-redis' }, backends['redis-node']),
  // Wakes all waiters by one global channel; its fencing token is that of a separate `INCR`.
  foreign(
    {
      store,
      name: 'simple-redis-mutex',
      kind: 'peer',
      floor: 'raw node-redis',
      packages: ['simple-redis-mutex'],
    },
    nodeRedis,
    (client) => (name) => simpleLock(client, name, { timeout: TTL_MS }),
  ),
];
