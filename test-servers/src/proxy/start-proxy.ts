import type { Address } from '@locks/core/conformance/proxy';
import { freePort } from '../free-port.ts';
import { RedisProxy } from './redis-proxy.ts';

/**
 * Starts a proxy in front of `target`.
 *
 * @param options - `protocol`: `raw` passes bytes on unread, so no command is counted and no single reply can be lost.
 *   Default `redis`.
 */
export async function startProxy(
  target: Address,
  { protocol = 'redis' }: { protocol?: 'redis' | 'raw' } = {},
): Promise<RedisProxy> {
  for (let tries = 1; ; tries += 1) {
    // Not one of the ports of outgoing connections: while the proxy refuses connections, one could be given its port.
    const proxy = new RedisProxy(target, await freePort(), protocol);
    try {
      await proxy.accept();
      return proxy;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || tries >= 10) throw error;
    }
  }
}
