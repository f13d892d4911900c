import type { Harness } from '@locks/core/conformance';
import { lockKey, versionOf, withAdmin } from '../../administration/redis.ts';
import { servedHarness } from '../connections/served-harness.ts';
import { closedWith, SharedClients } from '../connections/shared-clients.ts';
import type { RedisAddress } from './address.ts';
import type { Deployment, Topology } from './deployment.ts';
import { type Library, openClient } from './open-client.ts';
import type { OpenedClient } from './opened-client.ts';
import { redisWire } from './wire.ts';

/** The idle gap by the defaults of the backend: for so long a process that sends nothing counts as alive. */
const IDLE_GAP_MS = 3_000;
/** A first wait opens a connection; a client of Sentinel or a cluster asks several servers before. */
const SLACK_MS: Record<Topology, number> = { standalone: 500, sentinel: 800, cluster: 800 };

/** One client library on one topology. */
export function redisHarness(module: string, library: Library, topology: Topology): Harness {
  let clients: SharedClients<Promise<OpenedClient>>;
  return servedHarness<RedisAddress, Deployment>({
    module,
    name: topology === 'standalone' ? library : `${library}-${topology}`,
    topology,
    variable: 'LOCKS_CONFORMANCE_REDIS',
    start: async () => (await import('./deployment.ts')).deploy(topology),
    async prepare({ direct, proxied }) {
      clients = sharedClients(library, proxied);
      await Promise.all(clients.openAll());
      return await versionOf(direct);
    },
    hasPrefix: true,
    async createBackend(address, served, prefix) {
      if (served !== undefined) return (await clients.next()).backend(prefix === undefined ? {} : { prefix });
      const client = await openClient(library, address);
      return closedWith(client.backend(), async () => client.end());
    },
    cutOff: () => clients.cutOff(),
    end: () => clients.end(),
    faults: (direct, served) => ({
      // Replaces the proxy of the harness: a standalone server has a direct address, the others have the map of their proxies.
      wire: redisWire(library, () =>
        topology === 'standalone' ? direct() : (served()?.proxied as RedisAddress),
      ),
      // Upstash is reached by HTTP: its client cannot be closed.
      ...(library !== 'upstash' && {
        async onOwnClient() {
          const client = await openClient(library, direct());
          const backend = client.backend();
          return { backend, closeClient: async () => client.end() };
        },
      }),
      async evict(resource) {
        await withAdmin(direct(), (admin) => admin.del(lockKey(resource)));
      },
      async corrupt(resource) {
        await withAdmin(direct(), (admin) => admin.set(lockKey(resource), 'of another program'));
      },
    }),
    waivers: {
      'steal/stolen-before-it-was-reported': {
        reason: 'a waiter that is stolen from before it heard of its turn may stand behind the next one',
        link: 'docs/backends/redis.md',
      },
    },
    timing: { idleGapMs: IDLE_GAP_MS, slackMs: SLACK_MS[topology] },
  });
}

function sharedClients(library: Library, address: RedisAddress): SharedClients<Promise<OpenedClient>> {
  return new SharedClients(
    () => openClient(library, address),
    async (client) => (await client).end(),
  );
}
