import type { Wire } from '@locks/core/conformance';
import type { Address } from '@locks/core/conformance/proxy';
import { upstashBackend } from '@locks/upstash';
import { lockKey, versionOf, withAdmin } from '../administration/redis.ts';
import { servedHarness } from './connections/served-harness.ts';
import { at, serverIn } from './connections/server-url.ts';
import type { RedisAddress } from './redis/address.ts';

interface RestAddress {
  readonly url: string;
  readonly token: string;
  readonly redis: RedisAddress;
}

const CHECK_MS = 500;

const backendAt = ({ url, token }: RestAddress, prefix = 'lock:') =>
  upstashBackend({ url, token }, { prefix, maxPollMs: CHECK_MS });

/** The REST API of Upstash, by a bridge before a server of ours. */
export default servedHarness<RestAddress>({
  module: import.meta.url,
  name: 'upstash',
  variable: 'LOCKS_CONFORMANCE_UPSTASH',
  async start() {
    const { startProxy, startRedis, startRestBridge } = await import('@locks/test-servers');
    const server = await startRedis();
    const bridge = await startRestBridge(server);
    const proxy = await startProxy(bridge, { protocol: 'raw' });
    const redis = { kind: 'standalone', url: server.url } as const;
    const direct = { url: bridge.url, token: bridge.token, redis };
    return {
      direct,
      proxied: { ...direct, url: at(bridge.url, proxy) },
      proxies: [proxy],
      async stop() {
        await proxy.stop();
        await bridge.stop();
        await server.stop();
      },
    };
  },
  prepare: ({ direct }) => versionOf(direct.redis),
  hasPrefix: true,
  createBackend: (address, _, prefix) => backendAt(address, prefix),
  faults: (direct) => ({
    wire: wireOf(direct),
    async corrupt(resource) {
      await withAdmin(direct().redis, (admin) => admin.set(lockKey(resource), 'of another program'));
    },
    async evict(resource) {
      await withAdmin(direct().redis, (admin) => admin.del(lockKey(resource)));
    },
  }),
  waivers: {
    'steal/stolen-before-it-was-reported': {
      reason: 'a waiter that is stolen from before it heard of its turn may stand behind the next one',
      link: 'docs/backends/redis.md',
    },
  },
  timing: { idleGapMs: 3 * CHECK_MS, slackMs: 600 },
});

function wireOf(direct: () => RestAddress): Wire {
  return {
    servers: () => [serverIn(direct().url)],
    createBackend: (proxies: readonly Address[]) =>
      backendAt({ ...direct(), url: at(direct().url, proxies[0]) }),
  };
}
