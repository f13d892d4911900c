import type { LockBackend } from '@locks/core/backend';
import type { Harness } from '@locks/core/conformance';
import { quorumBackend } from '@locks/quorum';
import { lockKey, versionOf, withAdmin } from '../../administration/redis.ts';
import { servedHarness } from '../connections/served-harness.ts';
import { closedWith, SharedClients } from '../connections/shared-clients.ts';
import type { RedisAddress } from './address.ts';
import { type Library, openClient } from './open-client.ts';
import type { OpenedClient } from './opened-client.ts';
import { serversOf, through } from './wire.ts';

/** The time-out of a node is longer than the default, because many cases share two processors. */
const NODE_MS = 1_500;

/** A quorum of three independent servers, each with a client of one of these libraries. */
export function quorumHarness(module: string, name: string, libraries: readonly Library[]): Harness {
  let clients: SharedClients<Promise<OpenedClient[]>>;
  const open = (addresses: readonly RedisAddress[]): Promise<OpenedClient[]> =>
    Promise.all(addresses.map((address, node) => openClient(libraries[node] as Library, address)));
  const end = async (nodes: Promise<OpenedClient[]>): Promise<unknown> =>
    Promise.all((await nodes).map(async (client) => client.end()));
  const quorumOf = (nodes: readonly OpenedClient[]): LockBackend =>
    quorumBackend(
      nodes.map((client) => client.backend()),
      { nodeTimeoutMs: NODE_MS },
    );
  const ownQuorum = async (addresses: readonly RedisAddress[]): Promise<LockBackend> => {
    const nodes = open(addresses);
    return closedWith(quorumOf(await nodes), async () => void (await end(nodes)));
  };
  return servedHarness<readonly RedisAddress[]>({
    module,
    name,
    topology: '3 servers',
    variable: 'LOCKS_CONFORMANCE_QUORUM',
    async start() {
      const { deploy } = await import('./deployment.ts');
      const nodes = await Promise.all([deploy('standalone'), deploy('standalone'), deploy('standalone')]);
      return {
        direct: nodes.map(({ direct }) => direct),
        proxied: nodes.map(({ proxied }) => proxied),
        proxies: nodes.flatMap(({ proxies }) => proxies),
        stop: () => Promise.all(nodes.map((node) => node.stop())),
      };
    },
    async prepare({ direct, proxied = [] }) {
      clients = new SharedClients(() => open(proxied), end);
      return await versionOf(direct[0] as RedisAddress);
    },
    createBackend: async (addresses, served) =>
      served === undefined ? ownQuorum(addresses) : quorumOf(await clients.next()),
    cutOff: () => clients.cutOff(),
    end: () => clients.end(),
    faults: (direct) => ({
      wire: {
        servers: () => direct().flatMap(serversOf),
        createBackend: (proxies) =>
          ownQuorum(direct().map((address, node) => through(address, proxies.slice(node, node + 1)))),
      },
      async corrupt(resource) {
        for (const address of direct())
          await withAdmin(address, (admin) => admin.set(lockKey(resource), 'of another program'));
      },
      async evict(resource) {
        for (const address of direct()) await withAdmin(address, (admin) => admin.del(lockKey(resource)));
      },
    }),
    timing: { slackMs: 500, idleGapMs: 1_000 },
  });
}
