import type { Proxy } from '@locks/test-servers';

/** Cuts all connections through the proxies, and refuses new ones. Gives a function that repairs the network. */
export function cutProxies(proxies: readonly Proxy[]): () => Promise<void> {
  for (const proxy of proxies) {
    proxy.refuse();
    proxy.cut();
  }
  return async () => {
    await Promise.all(proxies.map((proxy) => proxy.heal()));
  };
}
