import { startRestBridge } from '@locks/test-servers';
import { fencedSet, upstashBackend } from '@locks/upstash';
import { serverIn } from '../connections/server-url.ts';
import type { RedisAddress } from './address.ts';
import type { OpenedClient } from './opened-client.ts';

/** The REST API of Upstash, by a bridge of its own. */
export async function openUpstash(address: RedisAddress): Promise<OpenedClient> {
  if (address.kind !== 'standalone') throw new Error('the bridge is opened for one server only');
  const bridge = await startRestBridge(serverIn(address.url));
  const database = { url: bridge.url, token: bridge.token };
  return {
    backend: (options) => upstashBackend(database, { maxPollMs: 100, prefix: options?.prefix ?? 'lock:' }),
    fencedSet: (key, value, token) => fencedSet(database, key, value, token),
    async set(key, value) {
      const headers = { authorization: `Bearer ${bridge.token}` };
      await fetch(bridge.url, { method: 'POST', headers, body: JSON.stringify(['SET', key, value]) });
    },
    end: () => bridge.stop(),
  };
}
