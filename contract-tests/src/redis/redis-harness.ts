import { defineHarness, delegate, type Harness } from '@locks/core/conformance';
import type { Cluster, Redis } from 'ioredis';
import type { RedisAddress } from './address.ts';
import { deploy, type Deployment, type Topology } from './deployment.ts';
import { ioredisClient, type Library, type OpenClient, openClient } from './open-client.ts';

const VARIABLE = 'LOCKS_CONFORMANCE_REDIS';
/** The defaults of the backend: a claim time that lapses, and the look after it. */
const IDLE_GAP_MS = 3_000;
/** A first wait opens a connection; a client of Sentinel or a cluster asks around before. */
const SLACK_MS: Record<Topology, number> = { standalone: 500, sentinel: 800, cluster: 800 };

/**
 * How many clients the backends of a process share, as those of an application would. To open one for Sentinel or for a
 * cluster costs node-redis a tenth of a second of CPU: dozens, in the middle of a case, would hold it up for seconds.
 */
const CLIENTS = 8;

/** One client library on one topology: this process speaks through proxies, child processes directly. */
export function redisHarness(module: string, library: Library, topology: Topology): Harness {
  let deployment: Deployment | undefined;
  const clients: Promise<OpenClient>[] = [];
  /** Those that were open when the connections were cut: they take their time to come back. */
  const cutOff: Promise<OpenClient>[] = [];
  let turn = 0;
  const direct = (): RedisAddress => JSON.parse(process.env[VARIABLE] ?? 'null') as RedisAddress;
  const harness = defineHarness({
    module,
    name: topology === 'standalone' ? library : `${library}-${topology}`,
    topology,
    async createBackend() {
      turn += 1;
      const client = await clientAt(turn % CLIENTS);
      const backend = client.backend();
      if (deployment !== undefined) return backend;
      // In a child process nobody tears down: there the client ends with its backend.
      return delegate(backend, {
        close: async () => {
          await backend.close();
          await dropClients();
        },
      });
    },
    async setup() {
      const started = await deploy(topology);
      deployment = started;
      await Promise.all(Array.from({ length: CLIENTS }, (_, at) => clientAt(at)));
      Object.assign(harness, { server: `Redis ${await versionOf(started.direct)}` });
      return {
        env: { [VARIABLE]: JSON.stringify(started.direct) },
        teardown: async () => {
          deployment = undefined;
          await dropClients();
          await started.stop();
        },
      };
    },
    faults: {
      async cut() {
        const proxies = deployment?.proxies ?? [];
        cutOff.push(...clients.splice(0));
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
  const clientAt = (at: number): Promise<OpenClient> => {
    clients[at] ??= openClient(library, deployment?.proxied ?? direct());
    return clients[at];
  };
  const dropClients = async (): Promise<void> => {
    // One that could not be opened has told whoever asked for it.
    await Promise.allSettled(
      [...clients.splice(0), ...cutOff.splice(0)].map(async (client) => (await client).end()),
    );
  };
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
  const admin = ioredisClient(address);
  try {
    return await act(admin);
  } finally {
    admin.disconnect();
  }
}
