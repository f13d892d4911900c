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

/** How many clients are connected before the first case: many at once, in the middle of one, would hold it up. */
const WARM: Record<Topology, number> = { standalone: 0, sentinel: 24, cluster: 16 };

/** One client library on one topology: this process speaks through proxies, child processes directly. */
export function redisHarness(module: string, library: Library, topology: Topology): Harness {
  let deployment: Deployment | undefined;
  // Connecting costs some clients a tenth of a second: those that were given back are used again, until a cut.
  const idle: OpenClient[] = [];
  let cuts = 0;
  const direct = (): RedisAddress => JSON.parse(process.env[VARIABLE] ?? 'null') as RedisAddress;
  const harness = defineHarness({
    module,
    name: topology === 'standalone' ? library : `${library}-${topology}`,
    topology,
    async createBackend() {
      const client = idle.pop() ?? (await openClient(library, deployment?.proxied ?? direct()));
      const backend = client.backend();
      const openedAt = cuts;
      let closed = false;
      // A backend never closes the client that it was given; here nobody else will.
      return delegate(backend, {
        close: async () => {
          await backend.close();
          if (closed) return;
          closed = true;
          if (deployment !== undefined && openedAt === cuts) idle.push(client);
          else await client.end();
        },
      });
    },
    async setup() {
      const started = await deploy(topology);
      deployment = started;
      idle.push(
        ...(await Promise.all(
          Array.from({ length: WARM[topology] }, () => openClient(library, started.proxied)),
        )),
      );
      Object.assign(harness, { server: `Redis ${await versionOf(started.direct)}` });
      return {
        env: { [VARIABLE]: JSON.stringify(started.direct) },
        teardown: async () => {
          deployment = undefined;
          await dropIdle();
          await started.stop();
        },
      };
    },
    faults: {
      async cut() {
        const proxies = deployment?.proxies ?? [];
        cuts += 1;
        await dropIdle();
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
  const dropIdle = async (): Promise<void> => {
    await Promise.all(idle.splice(0).map(async (client) => client.end()));
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
