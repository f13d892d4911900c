import type { Harness } from '@locks/core/conformance';
import type { Address } from '@locks/core/conformance/proxy';
import { natsBackend } from '@locks/nats';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { serverIn } from '../connections/server-url.ts';
import { servedHarness } from '../connections/served-harness.ts';
import { closedWith, SharedClients } from '../connections/shared-clients.ts';

/** A server, or a cluster of three. */
export function natsHarness(module: string, topology: 'standalone' | 'cluster'): Harness {
  const connections = new SharedClients(
    () => open(at),
    async (connection) => (await connection).close(),
  );
  let at: readonly string[] = [];
  return servedHarness<string[]>({
    module,
    name: topology === 'standalone' ? 'nats' : 'nats-cluster',
    topology,
    variable: 'LOCKS_CONFORMANCE_NATS',
    async start() {
      const { startNats, startNatsCluster, startProxy } = await import('@locks/test-servers');
      const given = topology === 'standalone' ? process.env['NATS_URL'] : undefined;
      const owner = new AsyncDisposableStack();
      const direct = given
        ? [given]
        : await urlsOf(owner, topology === 'standalone' ? startNats : startNatsCluster);
      const proxies = await Promise.all(
        direct.map(async (url) => owner.use(await startProxy(serverIn(url), { protocol: 'raw' }))),
      );
      return { direct, proxied: hostsOf(proxies), proxies, stop: () => owner.disposeAsync() };
    },
    async prepare({ direct, proxied = direct }) {
      at = proxied;
      const connection = await open(direct);
      // The bucket is made before the cases begin.
      const backend = natsBackend(connection);
      await backend.ping?.({ now: () => performance.now(), deadline: Number.POSITIVE_INFINITY });
      await backend.close();
      const version = connection.info?.version;
      await connection.close();
      return `NATS ${version}`;
    },
    hasPrefix: true,
    async createBackend(urls, served, prefix) {
      const options = prefix === undefined ? {} : { prefix };
      if (served !== undefined) return natsBackend(await connections.next(), { ...options });
      return await onConnectionOfItsOwn(urls);
    },
    cutOff: () => connections.cutOff(),
    end: () => connections.end(),
    faults: (direct) => ({
      wire: {
        servers: () => direct().map(serverIn),
        createBackend: (addresses) => onConnectionOfItsOwn(hostsOf(addresses)),
      },
      async onOwnClient() {
        const connection = await open(direct());
        return { backend: natsBackend(connection), closeClient: () => connection.close() };
      },
      async evict(resource) {
        const connection = await open(direct());
        try {
          const filter = `$KV.locks.${keyOf(resource)}`;
          await connection.request('$JS.API.STREAM.PURGE.KV_locks', JSON.stringify({ filter }), {
            timeout: 5_000,
          });
        } finally {
          await connection.close();
        }
      },
      async corrupt(resource) {
        const connection = await open(direct());
        try {
          await connection.request(`$KV.locks.${keyOf(resource)}`, 'of another program', { timeout: 5_000 });
        } finally {
          await connection.close();
        }
      },
    }),
    timing: { slackMs: 500, idleGapMs: 4_200 },
  });
}

async function urlsOf(
  owner: AsyncDisposableStack,
  start: () => Promise<AsyncDisposable & ({ readonly url: string } | { readonly urls: string[] })>,
): Promise<string[]> {
  const started = owner.use(await start());
  return 'urls' in started ? started.urls : [started.url];
}

async function onConnectionOfItsOwn(urls: readonly string[]) {
  const connection = await open(urls);
  return closedWith(natsBackend(connection), () => connection.close());
}

/** Without the addresses that the servers tell: those are not the ones of the proxies. */
async function open(urls: readonly string[]): Promise<NatsConnection> {
  return await connect({
    servers: [...urls],
    ignoreClusterUpdates: true,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 100,
  });
}

function hostsOf(addresses: readonly Address[]): string[] {
  return addresses.map(({ host, port }) => `nats://${host}:${port}`);
}

/** The key of a resource (docs/backends/nats.md). */
function keyOf(resource: string): string {
  const plain = /[-A-Za-z0-9_/]/;
  const bytes = [...Buffer.from(`locks/lock/${resource}`)].map((byte) => {
    const char = String.fromCharCode(byte);
    return plain.test(char) ? char : `=${byte.toString(16).padStart(2, '0')}`;
  });
  return bytes.join('');
}
