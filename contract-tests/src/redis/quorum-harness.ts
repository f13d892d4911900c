import { defineHarness, type Harness } from '@locks/core/conformance';
import { quorumBackend } from '@locks/core/quorum';
import { deploy, type Deployment } from './deployment.ts';
import { type Library, type OpenClient, openClient } from './open-client.ts';
import { lockKey, versionOf, withAdmin } from './redis-harness.ts';
import type { RedisAddress } from './address.ts';

const VARIABLE = 'LOCKS_CONFORMANCE_QUORUM';
/** Longer than the default: here many cases share two processors. */
const NODE_MS = 1_500;

/** A quorum of three servers that know nothing of each other, with a client of one of these libraries for each. */
export function quorumHarness(module: string, name: string, libraries: readonly Library[]): Harness {
  let deployments: readonly Deployment[] | undefined;
  /** The clients of backends that were closed are used again, until a cut. */
  const idle: OpenClient[][] = [];
  let cuts = 0;

  const direct = (): RedisAddress[] => JSON.parse(process.env[VARIABLE] ?? '[]') as RedisAddress[];

  const harness = defineHarness({
    module,
    name,
    topology: '3 servers',
    async createBackend() {
      const addresses = deployments?.map(({ proxied }) => proxied) ?? direct();
      const clients =
        idle.pop() ??
        (await Promise.all(
          addresses.map((address, index) => openClient(libraries[index] as Library, address)),
        ));
      const backend = quorumBackend(
        clients.map((client) => client.backend()),
        { nodeTimeoutMs: NODE_MS },
      );
      const openedAt = cuts;
      let closed = false;
      const close = backend.close.bind(backend);
      backend.close = async () => {
        await close();
        if (closed) return;
        closed = true;
        if (deployments !== undefined && openedAt === cuts) idle.push(clients);
        else await endAll([clients]);
      };
      return backend;
    },
    async setup() {
      const started = await Promise.all([deploy('standalone'), deploy('standalone'), deploy('standalone')]);
      deployments = started;
      const addresses = started.map((deployment) => deployment.direct);
      Object.assign(harness, { server: `Redis ${await versionOf(addresses[0] as RedisAddress)}` });
      return {
        env: { [VARIABLE]: JSON.stringify(addresses) },
        teardown: async () => {
          deployments = undefined;
          await endAll(idle.splice(0));
          await Promise.all(started.map((deployment) => deployment.stop()));
        },
      };
    },
    faults: {
      async cut() {
        const proxies = deployments?.flatMap((deployment) => deployment.proxies) ?? [];
        cuts += 1;
        await endAll(idle.splice(0));
        for (const proxy of proxies) {
          proxy.refuse();
          proxy.cut();
        }
        return async () => {
          await Promise.all(proxies.map((proxy) => proxy.heal()));
        };
      },
      async evict(resource) {
        for (const address of direct()) await withAdmin(address, (admin) => admin.del(lockKey(resource)));
      },
    },
    timing: { slackMs: 500, idleGapMs: 1_000 },
  });

  return harness;
}

async function endAll(clients: readonly OpenClient[][]): Promise<void> {
  await Promise.all(clients.flat().map(async (client) => client.end()));
}
