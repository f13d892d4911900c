import type { LockBackend } from '@locks/core/backend';
import type { Harness } from '@locks/core/conformance';
import { versionOf, withAdmin } from '../../administration/redis.ts';
import { servedHarness } from '../connections/served-harness.ts';
import { closedWith, SharedClients } from '../connections/shared-clients.ts';
import type { RedisAddress } from './address.ts';
import type { Deployment, Topology } from './deployment.ts';
import type { Library } from './open-client.ts';
import { serversOf, through } from './wire.ts';

const SPLIT_NAME = {
  reason: 'in a cluster, names with braces that are no hash tag are refused: Redisson cannot unlock them',
  link: 'docs/backends/redisson.md',
};
const ofPrefixes = {
  'names/prefixes-are-apart': {
    reason: 'the key is the one that Redisson writes: the prefix, and the name directly behind it',
    link: 'docs/backends/redisson.md',
  },
};
const ofSplitNames = { 'names/never-collide': SPLIT_NAME, 'names/exclude-as-written': SPLIT_NAME };

interface RedissonClient {
  backend(prefix?: string): LockBackend;
  end(): void | Promise<void>;
}

interface RedissonHarness {
  readonly module: string;
  readonly name: string;
  readonly library: Library;
  readonly topology: Topology;
  readonly fencing?: boolean;
}

/** The backend that speaks Redisson's protocol, through one client library on one topology. */
export function redissonHarness({
  module,
  name,
  library,
  topology,
  fencing = false,
}: RedissonHarness): Harness {
  const open = (address: RedisAddress): Promise<RedissonClient> => openRedisson(library, address, fencing);
  const closedBackend = async (address: RedisAddress): Promise<LockBackend> => {
    const client = await open(address);
    return closedWith(client.backend(), async () => client.end());
  };
  let clients: SharedClients<Promise<RedissonClient>>;
  return servedHarness<RedisAddress, Deployment>({
    module,
    name,
    topology,
    variable: 'LOCKS_CONFORMANCE_REDISSON',
    start: async () => (await import('./deployment.ts')).deploy(topology),
    async prepare({ direct, proxied }) {
      clients = new SharedClients(
        () => open(proxied),
        async (client) => (await client).end(),
      );
      await Promise.all(clients.openAll());
      return await versionOf(direct);
    },
    hasPrefix: true,
    createBackend: async (address, served, prefix) =>
      served === undefined ? closedBackend(address) : (await clients.next()).backend(prefix),
    cutOff: () => clients.cutOff(),
    end: () => clients.end(),
    faults: (direct, served) => {
      const proxied = (): RedisAddress =>
        topology === 'standalone' ? direct() : (served()?.proxied as RedisAddress);
      return {
        wire: {
          servers: () => serversOf(proxied()),
          createBackend: (proxies) => closedBackend(through(proxied(), proxies)),
        },
        async onOwnClient() {
          const client = await open(direct());
          return { backend: client.backend(), closeClient: async () => client.end() };
        },
        async corrupt(resource) {
          await withAdmin(direct(), (admin) => admin.set(resource, 'of another program'));
        },
        async evict(resource) {
          await withAdmin(direct(), (admin) => admin.del(resource));
        },
      };
    },
    waivers: { ...ofPrefixes, ...(topology === 'cluster' && ofSplitNames) },
    // A waiter that no message woke asks once a second.
    timing: { idleGapMs: 1_500, slackMs: topology === 'standalone' ? 500 : 800 },
  });
}

async function openRedisson(
  library: Library,
  address: RedisAddress,
  fencing: boolean,
): Promise<RedissonClient> {
  if (library === 'redis-ioredis') {
    const [{ ioredisClient }, { redissonBackend }] = await Promise.all([
      import('./open-ioredis.ts'),
      import('@locks/redisson/ioredis'),
    ]);
    const client = ioredisClient(address);
    client.on('error', () => undefined);
    client.setMaxListeners(0);
    return {
      backend: (prefix = '') => redissonBackend(client, { fencing, prefix }),
      end: () => client.disconnect(),
    };
  }
  const [{ nodeRedisClient }, { redissonBackend }] = await Promise.all([
    import('./open-node-redis.ts'),
    import('@locks/redisson/redis'),
  ]);
  const client = nodeRedisClient(address);
  client.on('error', () => undefined);
  client.setMaxListeners(0);
  await client.connect();
  return {
    backend: (prefix = '') => redissonBackend(client as never, { fencing, prefix }),
    end: async () => {
      if (client.isOpen) await client.destroy();
    },
  };
}
