import { defineHarness, type Harness } from '@locks/core/conformance';
import { quorumBackend } from '@locks/core/quorum';
import type { Deployment } from './deployment.ts';
import { type Library, type OpenClient, openClient } from './open-client.ts';
import { lockKey, versionOf, withAdmin } from '../../administration/redis.ts';
import type { RedisAddress } from './address.ts';
import { serversOf, through } from './wire.ts';
import { cutProxies } from '../connections/cut-proxies.ts';
import { closedWith, SharedClients } from '../connections/shared-clients.ts';

const VARIABLE = 'LOCKS_CONFORMANCE_QUORUM';
/** The time-out of a node is longer than the default, because many cases share two processors. */
const NODE_MS = 1_500;

/** A quorum of three independent servers, each with a client of one of these libraries. */
export function quorumHarness(module: string, name: string, libraries: readonly Library[]): Harness {
  let deployments: readonly Deployment[] | undefined;
  const direct = (): RedisAddress[] => JSON.parse(process.env[VARIABLE] ?? '[]') as RedisAddress[];
  const clients = new SharedClients(
    (): Promise<OpenClient[]> => {
      const addresses = deployments?.map(({ proxied }) => proxied) ?? direct();
      return Promise.all(addresses.map((address, node) => openClient(libraries[node] as Library, address)));
    },
    async (nodes) => Promise.all((await nodes).map(async (client) => client.end())),
  );

  const harness = defineHarness({
    module,
    name,
    topology: '3 servers',
    async createBackend() {
      const nodes = (await clients.next()).map((client) => client.backend());
      const backend = quorumBackend(nodes, { nodeTimeoutMs: NODE_MS });
      return deployments === undefined ? closedWith(backend, () => clients.end()) : backend;
    },
    async setup() {
      const { deploy } = await import('./deployment.ts');
      const started = await Promise.all([deploy('standalone'), deploy('standalone'), deploy('standalone')]);
      deployments = started;
      const addresses = started.map((deployment) => deployment.direct);
      Object.assign(harness, { server: await versionOf(addresses[0] as RedisAddress) });
      return {
        env: { [VARIABLE]: JSON.stringify(addresses) },
        teardown: async () => {
          deployments = undefined;
          await clients.end();
          await Promise.all(started.map((deployment) => deployment.stop()));
        },
      };
    },
    faults: {
      async cut() {
        clients.cutOff();
        return cutProxies(deployments?.flatMap((deployment) => deployment.proxies) ?? []);
      },
      wire: {
        servers: () => direct().flatMap(serversOf),
        async createBackend(proxies) {
          const nodes = await Promise.all(
            direct().map((address, node) =>
              openClient(libraries[node] as Library, through(address, proxies.slice(node, node + 1))),
            ),
          );
          const backend = quorumBackend(
            nodes.map((client) => client.backend()),
            { nodeTimeoutMs: NODE_MS },
          );
          return closedWith(backend, async () => {
            await Promise.all(nodes.map(async (client) => client.end()));
          });
        },
      },
      async evict(resource) {
        for (const address of direct()) await withAdmin(address, (admin) => admin.del(lockKey(resource)));
      },
    },
    timing: { slackMs: 500, idleGapMs: 1_000 },
  });

  return harness;
}
