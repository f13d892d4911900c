import { checkClient } from './check-client.ts';
import type { ValkeyGlideClient } from './clients.ts';
import { type GlidePort, portOf } from './glide-port.ts';

const ports = new WeakMap<ValkeyGlideClient, GlidePort>();

/**
 * The port of what is called with a client, again and again.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 */
export function clientPort(client: ValkeyGlideClient): GlidePort {
  let port = ports.get(client);
  if (port === undefined) {
    port = portOf(checkClient(client));
    ports.set(client, port);
  }
  return port;
}
