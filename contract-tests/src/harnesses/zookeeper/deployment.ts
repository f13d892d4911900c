import { type Proxy, startProxy, startZookeeper, startZookeeperEnsemble } from '@locks/test-servers';
import { serverIn } from '../connections/server-url.ts';

export type Topology = 'standalone' | 'ensemble';

/** Servers, each behind a proxy. */
export interface Deployment {
  /** The connect strings of the servers. */
  readonly direct: string;
  readonly proxied: string;
  readonly proxies: readonly Proxy[];
  stop(): Promise<void>;
}

/** The server that `ZOOKEEPER_URL` names, or private ones. */
export async function deploy(topology: Topology): Promise<Deployment> {
  const given = topology === 'standalone' ? process.env['ZOOKEEPER_URL'] : undefined;
  const { servers, stop } = given
    ? { servers: addressesIn(given), stop: async () => {} }
    : await start(topology);
  const proxies = await Promise.all(
    servers.map((server) => startProxy(serverIn(`zookeeper://${server}`), { protocol: 'raw' })),
  );
  return {
    direct: servers.join(','),
    proxied: proxies.map(({ host, port }) => `${host}:${port}`).join(','),
    proxies,
    async stop() {
      await Promise.all(proxies.map((proxy) => proxy.stop()));
      await stop();
    },
  };
}

async function start(topology: Topology): Promise<{ servers: string[]; stop: () => Promise<void> }> {
  if (topology === 'standalone') {
    const server = await startZookeeper();
    return { servers: [server.address], stop: () => server.stop() };
  }
  const ensemble = await startZookeeperEnsemble();
  return { servers: ensemble.members.map(({ address }) => address), stop: () => ensemble.stop() };
}

/** A connect string, also with `zookeeper://` before it. */
function addressesIn(url: string): string[] {
  return url
    .replace(/^\w+:\/\//, '')
    .replace(/\/.*$/, '')
    .split(',');
}
