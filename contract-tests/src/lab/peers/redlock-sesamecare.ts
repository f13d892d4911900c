import { Redlock } from '@sesamecare-oss/redlock';
import { Redis } from 'ioredis';
import { expiring, type OpenPeer } from './peer-lock.ts';

/** Of the library's settings: it tries again every 200 ± 100 ms. */
const RETRY_MS = 200;

export const open: OpenPeer = ({ host, port }, ttlMs) => {
  const client = new Redis({ host, port });
  client.on('error', () => undefined);
  const library = new Redlock([client]);
  return async (name, waitMs) => {
    const lock = await library.acquire([name], ttlMs, { retryCount: Math.round(waitMs / RETRY_MS) });
    return expiring(
      () => lock.expiration - Date.now(),
      () => lock.release(),
    );
  };
};
