import type { RedisPort } from './port.ts';

/**
 * Makes the port of each client once, for functions that are called with a client, again and again: the client gets its listeners once.
 *
 * @param make - checks the client, and makes its port
 */
export function portPerClient<Client extends object, Port extends RedisPort>(
  make: (client: Client) => Port,
): (client: Client) => Port {
  const ports = new WeakMap<Client, Port>();
  return (client) => {
    let port = ports.get(client);
    if (port === undefined) {
      port = make(client);
      ports.set(client, port);
    }
    return port;
  };
}
