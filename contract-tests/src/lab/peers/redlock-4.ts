import { Redis } from 'ioredis5';
import Redlock from 'redlock4';
import { expiring, type OpenPeer } from './peer-lock.ts';

/** Of the library's settings: it tries again every 200 ms, and up to 100 ms later. */
const RETRY_MS = 250;

export const open: OpenPeer = ({ host, port }, ttlMs) => {
  const client = new Redis({ host, port });
  client.on('error', () => undefined);
  return async (name, waitMs) => {
    // The number of tries is a setting of the whole library.
    const library = new Redlock([client], { retryCount: Math.round(waitMs / RETRY_MS) });
    const lock = await library.lock(name, ttlMs);
    return expiring(
      () => lock.expiration - Date.now(),
      () => lock.unlock(),
    );
  };
};
