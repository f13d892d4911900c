import { defineHarness, type Harness } from '@locks/core/conformance';
import { lockKey, versionOf, withAdmin } from '../../administration/redis.ts';
import type { RedisAddress } from './address.ts';
import type { Deployment, Topology } from './deployment.ts';
import { cutProxies } from '../connections/cut-proxies.ts';
import { closedWith, SharedClients } from '../connections/shared-clients.ts';
import { type Library, type OpenClient, openClient } from './open-client.ts';
import { redisWire } from './wire.ts';

const VARIABLE = 'LOCKS_CONFORMANCE_REDIS';
/** The idle gap by the defaults of the backend: for so long a process that sends nothing counts as alive. */
const IDLE_GAP_MS = 3_000;
/** A first wait opens a connection; a client of Sentinel or a cluster asks several servers before. */
const SLACK_MS: Record<Topology, number> = { standalone: 500, sentinel: 800, cluster: 800 };

/** One client library on one topology: this process speaks through proxies, child processes directly. */
export function redisHarness(module: string, library: Library, topology: Topology): Harness {
  let deployment: Deployment | undefined;
  const direct = (): RedisAddress => JSON.parse(process.env[VARIABLE] ?? 'null') as RedisAddress;
  const clients = new SharedClients(
    (): Promise<OpenClient> => openClient(library, deployment?.proxied ?? direct()),
    async (client) => (await client).end(),
  );
  const harness = defineHarness({
    module,
    name: topology === 'standalone' ? library : `${library}-${topology}`,
    topology,
    async createBackend() {
      const backend = (await clients.next()).backend();
      return deployment === undefined ? closedWith(backend, () => clients.end()) : backend;
    },
    async setup() {
      // The import is here because child processes, which start no servers, load no more than they need.
      const { deploy } = await import('./deployment.ts');
      const started = await deploy(topology);
      deployment = started;
      await Promise.all(clients.openAll());
      Object.assign(harness, { server: await versionOf(started.direct) });
      return {
        env: { [VARIABLE]: JSON.stringify(started.direct) },
        teardown: async () => {
          deployment = undefined;
          await clients.end();
          await started.stop();
        },
      };
    },
    faults: {
      async cut() {
        clients.cutOff();
        return cutProxies(deployment?.proxies ?? []);
      },
      // Replaces the proxy of the harness: a standalone server has a direct address, the others have the map of their proxies.
      wire: redisWire(library, () =>
        topology === 'standalone' ? direct() : (deployment?.proxied as RedisAddress),
      ),
      async evict(resource) {
        await withAdmin(direct(), (admin) => admin.del(lockKey(resource)));
      },
    },
    waivers: {
      'steal/stolen-before-it-was-reported': {
        reason: 'a waiter that is stolen from before it heard of its turn may stand behind the next one',
        link: 'docs/backends/redis.md',
      },
    },
    timing: { idleGapMs: IDLE_GAP_MS, slackMs: SLACK_MS[topology] },
  });
  return harness;
}
