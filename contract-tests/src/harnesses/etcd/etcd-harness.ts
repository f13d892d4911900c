import { defineHarness, type Harness } from '@locks/core/conformance';
import { clientOptions, etcdBackend } from '@locks/etcd';
import type { EtcdCluster, Proxy } from '@locks/test-servers';
import { Etcd3 } from 'etcd3';
import { cutProxies } from '../connections/cut-proxies.ts';
import { serverIn } from '../connections/server-url.ts';
import { SharedClients } from '../connections/shared-clients.ts';

const VARIABLE = 'LOCKS_CONFORMANCE_ETCD';
/** The queue entries of a process outlive it by their lease, and the server checks for ended leases twice a second. */
const IDLE_GAP_MS = 3_500;
const WAITER_TTL_MS = 2_000;

interface Deployment {
  readonly cluster: EtcdCluster;
  readonly proxies: readonly Proxy[];
}

/** A server, or a cluster of three: this process speaks through proxies, child processes directly. */
export function etcdHarness(module: string, topology: 'standalone' | 'cluster'): Harness {
  let deployment: Deployment | undefined;
  const clients = new SharedClients(
    () => new Etcd3(clientOptions({ hosts: hostsOf(deployment?.proxies ?? []) })),
    (client) => client.close(),
  );
  const direct = (): string[] => JSON.parse(process.env[VARIABLE] ?? '[]') as string[];
  const harness = defineHarness({
    module,
    name: topology === 'standalone' ? 'etcd' : 'etcd-cluster',
    topology,
    createBackend() {
      // A child process has one backend, which ends with its client.
      if (deployment === undefined) return etcdBackend({ hosts: direct() }, { waiterTtlMs: WAITER_TTL_MS });
      return etcdBackend(clients.next(), { waiterTtlMs: WAITER_TTL_MS });
    },
    async setup() {
      // The import is here because child processes load no more than they need.
      const { startEtcdCluster, startProxy } = await import('@locks/test-servers');
      const cluster = await startEtcdCluster({ members: topology === 'cluster' ? 3 : 1 });
      const proxies = await Promise.all(
        cluster.members.map((member) => startProxy(member, { protocol: 'raw' })),
      );
      deployment = { cluster, proxies };
      Object.assign(harness, {
        server: `etcd ${(await cluster.leader().then((leader) => leader.status())).version}`,
      });
      return {
        env: { [VARIABLE]: JSON.stringify(cluster.hosts) },
        teardown: async () => {
          deployment = undefined;
          await clients.end();
          await Promise.all(proxies.map((proxy) => proxy.stop()));
          await cluster.stop();
        },
      };
    },
    faults: {
      async cut() {
        clients.cutOff();
        return cutProxies(deployment?.proxies ?? []);
      },
      wire: {
        servers: () => direct().map(serverIn),
        createBackend: (addresses) =>
          etcdBackend({ hosts: hostsOf(addresses) }, { waiterTtlMs: WAITER_TTL_MS }),
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
    },
    // The long ttl of the suite is the ttl and three times the slack: whole seconds, as all ttls of etcd are.
    timing: { ttlMs: 1_000, slackMs: 2_000 / 3, idleGapMs: IDLE_GAP_MS },
  });
  return harness;
}

function hostsOf(proxies: readonly { host: string; port: number }[]): string[] {
  return proxies.map(({ host, port }) => `http://${host}:${port}`);
}

/** The keys of a resource (docs/backends/etcd.md). */
function keysOf(resource: string): string {
  // oxlint-disable-next-line no-control-regex
  const escaped = resource.replace(/[%/\u0000-\u001f\u007f]/g, (char) => {
    return `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
  });
  return `locks/${escaped}/`;
}
