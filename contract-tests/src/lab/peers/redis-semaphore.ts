import { Redis } from 'ioredis';
import { Mutex } from 'redis-semaphore';
import type { OpenPeer } from './peer-lock.ts';

export const open: OpenPeer = ({ host, port }, ttlMs) => {
  const client = new Redis({ host, port });
  client.on('error', () => undefined);
  return async (name, waitMs) => {
    const lost = new AbortController();
    const mutex = new Mutex(client, name, {
      lockTimeout: ttlMs,
      acquireTimeout: waitMs,
      onLockLost: () => lost.abort(),
    });
    await mutex.acquire();
    return { signal: lost.signal, release: () => mutex.release() };
  };
};
