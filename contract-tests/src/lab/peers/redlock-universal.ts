import { Redis } from 'ioredis';
import { createLock, IoredisAdapter } from 'redlock-universal';
import { expiring, type OpenPeer } from './peer-lock.ts';

/** Of the library's settings: it tries again every 100 ms. */
const RETRY_MS = 100;

export const open: OpenPeer = ({ host, port }, ttlMs) => {
  const client = new Redis({ host, port });
  client.on('error', () => undefined);
  const adapter = new IoredisAdapter(client);
  return async (name, waitMs) => {
    const retryAttempts = Math.round(waitMs / RETRY_MS);
    const lock = createLock({ adapter, key: name, ttl: ttlMs, retryAttempts });
    const handle = await lock.acquire();
    return expiring(
      () => handle.acquiredAt + ttlMs - Date.now(),
      () => lock.release(handle),
    );
  };
};
