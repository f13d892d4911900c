import { checkClient } from './check-client.ts';
import type { NodeRedisClient } from './clients.ts';
import { NodeRedisPort } from './node-redis-port.ts';

const ports = new WeakMap<NodeRedisClient, NodeRedisPort>();

/**
 * The port of what is called with a client, again and again: the client gets its listeners once.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function portOf(client: NodeRedisClient): NodeRedisPort {
  let port = ports.get(client);
  if (port === undefined) {
    port = new NodeRedisPort(checkClient(client));
    ports.set(client, port);
  }
  return port;
}
