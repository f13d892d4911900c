import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { OpenPeer } from './peer-lock.ts';

const POLL_MS = 50;
const COMPARE_AND_DELETE =
  "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";

/** What applications and job queues write by hand. */
export const open: OpenPeer = ({ host, port }, ttlMs) => {
  const client = new Redis({ host, port });
  client.on('error', () => undefined);
  return async (name, waitMs) => {
    const value = randomUUID();
    const giveUpAt = performance.now() + waitMs;
    while ((await client.set(name, value, 'PX', ttlMs, 'NX')) === null) {
      if (performance.now() + POLL_MS > giveUpAt) return undefined;
      await sleep(POLL_MS);
    }
    return { release: () => client.eval(COMPARE_AND_DELETE, 1, name, value) };
  };
};
