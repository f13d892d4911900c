import type { Cluster, Redis } from 'ioredis';
import { checkClient, type IoredisClient } from './check-client.ts';
import { IoredisPort } from './ioredis-port.ts';

const ports = new WeakMap<IoredisClient, IoredisPort>();

/**
 * The port of what is called with a client, again and again: the client gets its listeners once.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function portOf(client: IoredisClient): IoredisPort {
  let port = ports.get(client);
  if (port === undefined) {
    checkClient(client);
    port = new IoredisPort(client as Redis | Cluster);
    ports.set(client, port);
  }
  return port;
}
