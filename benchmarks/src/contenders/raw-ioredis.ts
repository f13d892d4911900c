import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { connectIoredis, connectIoredis5 } from './connect.ts';
import { COMPARE_AND_DELETE, type Contender, POLL_MS, type Session, TTL_MS } from './contender.ts';

/** The part of ioredis that the floor uses, the same in versions 5 and 6. */
interface Client {
  set(key: string, value: string, px: 'PX', ttlMs: number, nx: 'NX'): Promise<'OK' | null>;
  evalsha(sha1: string, keyCount: number, key: string, value: string): Promise<unknown>;
  script(load: 'LOAD', source: string): Promise<unknown>;
  ping(): Promise<string>;
  disconnect(): void;
}

export const rawIoredis: Contender = {
  store: 'redis',
  name: 'raw ioredis',
  kind: 'floor',
  floor: 'raw ioredis',
  packages: ['ioredis'],
  open: async (url) => openFloor((await connectIoredis(url)) as Client),
};

export const rawIoredis5: Contender = {
  store: 'redis',
  name: 'raw ioredis 5',
  kind: 'floor',
  floor: 'raw ioredis 5',
  packages: ['ioredis5'],
  open: async (url) => openFloor(await connectIoredis5(url)),
};

async function openFloor(client: Client): Promise<Session> {
  const sha1 = String(await client.script('LOAD', COMPARE_AND_DELETE));
  return {
    async acquire(name) {
      const id = randomUUID();
      while ((await client.set(name, id, 'PX', TTL_MS, 'NX')) === null) await delay(POLL_MS);
      return () => client.evalsha(sha1, 1, name, id);
    },
    ping: () => client.ping(),
    close: async () => client.disconnect(),
  };
}
