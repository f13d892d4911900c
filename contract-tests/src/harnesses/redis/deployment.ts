import { type Proxy, startCluster, startProxy, startRedis, startSentinel } from '@locks/test-servers';
import type { Address } from '@locks/core/conformance/proxy';
import { at, serverIn } from '../connections/server-url.ts';
import type { NatMap, RedisAddress } from './address.ts';

export type Topology = RedisAddress['kind'];

/** The servers of one topology, each behind a proxy. */
export interface Deployment {
  /** The address past the proxies. */
  readonly direct: RedisAddress;
  readonly proxied: RedisAddress;
  /** The proxies of the servers that hold data; Sentinels have none. */
  readonly proxies: readonly Proxy[];
  stop(): Promise<void>;
}

export async function deploy(topology: Topology): Promise<Deployment> {
  switch (topology) {
    case 'standalone':
      return deployStandalone();
    case 'sentinel':
      return deploySentinel();
    case 'cluster':
      return deployCluster();
  }
}

/** The server that `REDIS_URL` names, else a private one. */
async function deployStandalone(): Promise<Deployment> {
  const given = process.env['REDIS_URL'];
  const server = given ? undefined : await startRedis();
  const direct = given || (server?.url as string);
  const proxy = await startProxy(serverIn(direct));
  return {
    direct: { kind: 'standalone', url: direct },
    proxied: { kind: 'standalone', url: at(direct, proxy) },
    proxies: [proxy],
    stop: async () => {
      await proxy.stop();
      await server?.stop();
    },
  };
}

async function deploySentinel(): Promise<Deployment> {
  const deployment = await startSentinel();
  const { proxies, natMap } = await proxiesOf(deployment.nodes);
  const sentinels = deployment.sentinels.map(({ host, port }) => ({ host, port }));
  const direct = { kind: 'sentinel', name: deployment.name, sentinels } as const;
  return {
    direct,
    proxied: { ...direct, natMap },
    proxies,
    stop: async () => {
      await Promise.all(proxies.map((proxy) => proxy.stop()));
      await deployment.stop();
    },
  };
}

async function deployCluster(): Promise<Deployment> {
  const cluster = await startCluster();
  const { proxies, natMap } = await proxiesOf(cluster.nodes);
  return {
    direct: { kind: 'cluster', roots: cluster.roots },
    proxied: { kind: 'cluster', roots: proxies.map(({ host, port }) => ({ host, port })), natMap },
    proxies,
    stop: async () => {
      await Promise.all(proxies.map((proxy) => proxy.stop()));
      await cluster.stop();
    },
  };
}

async function proxiesOf(servers: readonly Address[]): Promise<{ proxies: Proxy[]; natMap: NatMap }> {
  const proxies = await Promise.all(servers.map((server) => startProxy(server)));
  const natMap = Object.fromEntries(
    proxies.map((proxy, index) => {
      const { host, port } = servers[index] as Address;
      return [`${host}:${port}`, { host: proxy.host, port: proxy.port }];
    }),
  );
  return { proxies, natMap };
}
