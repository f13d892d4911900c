import type { Wire } from '@locks/core/conformance';
import type { Address } from '@locks/core/conformance/proxy';
import { closedWith } from '../connections/shared-clients.ts';
import { at, serverIn } from '../connections/server-url.ts';
import type { RedisAddress } from './address.ts';
import { type Library, openClient } from './open-client.ts';

/** The wire of the servers that hold data. `proxied` gives an address with a map of these servers. */
export function redisWire(library: Library, proxied: () => RedisAddress): Wire {
  return {
    servers: () => serversOf(proxied()),
    async createBackend(proxies) {
      const client = await openClient(library, through(proxied(), proxies));
      return closedWith(client.backend(), async () => client.end());
    },
  };
}

export function serversOf(address: RedisAddress): Address[] {
  if (address.kind === 'standalone') return [serverIn(address.url)];
  return Object.keys(address.natMap ?? {}).map((server) => {
    const colon = server.lastIndexOf(':');
    return { host: server.slice(0, colon), port: Number(server.slice(colon + 1)) };
  });
}

export function through(address: RedisAddress, proxies: readonly Address[]): RedisAddress {
  if (address.kind === 'standalone') return { ...address, url: at(address.url, proxies[0]) };
  const servers = Object.keys(address.natMap ?? {});
  const natMap = Object.fromEntries(servers.map((server, index) => [server, proxies[index] as Address]));
  return address.kind === 'cluster' ? { ...address, roots: proxies, natMap } : { ...address, natMap };
}
