import { defineHarness, type Harness } from '@locks/core/conformance';
import type { Cluster, Redis } from 'ioredis';
import type { RedisAddress } from './address.ts';
import type { Deployment, Topology } from './deployment.ts';
import { closedWith, SharedClients } from '../shared-clients.ts';
import { type Library, type OpenClient, openClient } from './open-client.ts';

const VARIABLE = 'LOCKS_CONFORMANCE_REDIS';
/** The defaults of the backend: a claim time that lapses, and the look after it. */
const IDLE_GAP_MS = 3_000;
/** A first wait opens a connection; a client of Sentinel or a cluster asks around before. */
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
      // Only where servers are started: child processes load no more than they need.
      const { deploy } = await import('./deployment.ts');
      const started = await deploy(topology);
      deployment = started;
      await Promise.all(clients.openAll());
      Object.assign(harness, { server: `Redis ${await versionOf(started.direct)}` });
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
        const proxies = deployment?.proxies ?? [];
        clients.cutOff();
        for (const proxy of proxies) {
          proxy.refuse();
          proxy.cut();
        }
        return async () => {
          await Promise.all(proxies.map((proxy) => proxy.heal()));
        };
      },
      async evict(resource) {
        await withAdmin(direct(), (admin) => admin.del(lockKey(resource)));
      },
    },
    timing: { idleGapMs: IDLE_GAP_MS, slackMs: SLACK_MS[topology] },
  });
  return harness;
}

/** As docs/backends/redis.md says. */
export function lockKey(resource: string): string {
  const encoded = /[{}]|%(?:25|7B|7D)/.test(resource)
    ? resource.replace(/[%{}]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)
    : resource;
  return `lock:${encoded}`;
}

export async function versionOf(address: RedisAddress): Promise<string> {
  const info = await withAdmin(address, (admin) => admin.info('server'));
  return /^redis_version:(\S+)/m.exec(info)?.[1] ?? 'of unknown version';
}

export async function withAdmin<T>(
  address: RedisAddress,
  act: (admin: Redis | Cluster) => Promise<T>,
): Promise<T> {
  const { ioredisClient } = await import('./open-ioredis.ts');
  const admin = ioredisClient(address);
  try {
    return await act(admin);
  } finally {
    admin.disconnect();
  }
}
