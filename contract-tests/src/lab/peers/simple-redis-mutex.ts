import { createClient, type RedisClientType } from 'redis';
import { lock } from 'simple-redis-mutex';
import type { OpenPeer } from './peer-lock.ts';

/** Its default of 10 s counts on a message of each release, which only its own locks send. */
const POLL_MS = 100;

export const open: OpenPeer = ({ host, port }, ttlMs) => {
  const client = createClient({ socket: { host, port } }) as RedisClientType;
  client.on('error', () => undefined);
  const connected = client.connect();
  return async (name, waitMs) => {
    await connected;
    const release = await lock(client, name, { timeout: ttlMs, pollingInterval: POLL_MS, failAfter: waitMs });
    return { release };
  };
};
