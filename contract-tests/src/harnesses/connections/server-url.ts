import type { Address } from '@locks/core/conformance/proxy';

const DEFAULT_PORTS: Readonly<Record<string, number>> = {
  'mongodb:': 27017,
  'mysql:': 3306,
  'nats:': 4222,
  'redis:': 6379,
  'zookeeper:': 2181,
};

/** The address of the server in a connection string. */
export function serverIn(url: string): Address {
  const { hostname, port, protocol } = new URL(url);
  return { host: hostname, port: Number(port || (DEFAULT_PORTS[protocol] ?? 5432)) };
}

/** The connection string with another address. */
export function at(url: string, address: Address | undefined): string {
  const moved = new URL(url);
  moved.host = `${address?.host}:${address?.port}`;
  return moved.href;
}
