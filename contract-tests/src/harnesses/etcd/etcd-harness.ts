import type { Address } from '@locks/core/conformance/proxy';
import type { Harness } from '@locks/core/conformance';
import { clientOptions, etcdBackend } from '@locks/etcd';
import { Etcd3 } from 'etcd3';
import { serverIn } from '../connections/server-url.ts';
import { servedHarness } from '../connections/served-harness.ts';
import { SharedClients } from '../connections/shared-clients.ts';

/** The queue entries of a process outlive it by their lease, and the server checks for ended leases twice a second. */
const IDLE_GAP_MS = 3_500;
const options = { waiterTtlMs: 2_000 };

/** A server, or a cluster of three. */
export function etcdHarness(module: string, topology: 'standalone' | 'cluster'): Harness {
  let clients: SharedClients<Etcd3>;
  return servedHarness<string[]>({
    module,
    name: topology === 'standalone' ? 'etcd' : 'etcd-cluster',
    topology,
    variable: 'LOCKS_CONFORMANCE_ETCD',
    async start() {
      const { startEtcdCluster, startProxy } = await import('@locks/test-servers');
      const cluster = await startEtcdCluster({ members: topology === 'cluster' ? 3 : 1 });
      const proxies = await Promise.all(
        cluster.members.map((member) => startProxy(member, { protocol: 'raw' })),
      );
      return {
        ...{ direct: cluster.hosts, proxied: hostsOf(proxies), proxies },
        async stop() {
          await Promise.all(proxies.map((proxy) => proxy.stop()));
          await cluster.stop();
        },
      };
    },
    async prepare({ direct, proxied }) {
      clients = new SharedClients(
        () => new Etcd3(clientOptions({ hosts: proxied as string[] })),
        (client) => client.close(),
      );
      const admin = new Etcd3({ hosts: direct });
      const { version } = await admin.maintenance.status();
      admin.close();
      return `etcd ${version}`;
    },
    hasPrefix: true,
    createBackend(hosts, served, prefix) {
      const all = prefix === undefined ? options : { ...options, prefix };
      return etcdBackend(served === undefined ? { hosts } : clients.next(), all);
    },
    cutOff: () => clients.cutOff(),
    end: () => clients.end(),
    faults: (direct) => ({
      wire: {
        servers: () => direct().map(serverIn),
        createBackend: (addresses) => etcdBackend({ hosts: hostsOf(addresses) }, options),
      },
      async onOwnClient() {
        const own = new Etcd3(clientOptions({ hosts: direct() }));
        return { backend: etcdBackend(own, options), closeClient: async () => own.close() };
      },
      async evict(resource) {
        const admin = new Etcd3({ hosts: direct() });
        try {
          const entries = await admin.getAll().prefix(keysOf(resource)).strings();
          const holds = Object.keys(entries).filter((key) => /^(?:re|rs|p\d+h)/.test(entries[key] ?? ''));
          await Promise.all(holds.map((key) => admin.delete().key(key)));
        } finally {
          admin.close();
        }
      },
      async corrupt(resource) {
        const admin = new Etcd3({ hosts: direct() });
        try {
          await admin.put(`${keysOf(resource)}program`).value('re{"token":"of another program","at":null}');
        } finally {
          admin.close();
        }
      },
    }),
    // The long ttl of the suite is the ttl and three times the slack: whole seconds, as all ttls of etcd are.
    timing: { ttlMs: 1_000, slackMs: 2_000 / 3, idleGapMs: IDLE_GAP_MS },
  });
}

function hostsOf(addresses: readonly Address[]): string[] {
  return addresses.map(({ host, port }) => `http://${host}:${port}`);
}

/** The keys of a resource (docs/backends/etcd.md). */
function keysOf(resource: string): string {
  // oxlint-disable-next-line no-control-regex
  const escaped = resource.replace(/[%/\u0000-\u001f\u007f]/g, (char) => {
    return `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
  });
  return `locks//${escaped}/`;
}
