import { createLocks } from '@locks/core';
import { kubernetesBackend } from '@locks/kubernetes';
import type { KubernetesAccess } from '@locks/test-servers';
import { at, serverIn } from './connections/server-url.ts';
import { type Served, servedHarness } from './connections/served-harness.ts';
import { configFor } from './kubernetes/kube-config.ts';

interface KubernetesServed extends Served<KubernetesAccess> {
  readonly version: { readonly gitVersion: string };
}

/** An API server of Kubernetes with its etcd, which must have been built: `node test-servers/install.mjs kubernetes`. */
export default servedHarness<KubernetesAccess, KubernetesServed>({
  module: import.meta.url,
  name: 'kubernetes',
  variable: 'LOCKS_CONFORMANCE_KUBERNETES',
  async start() {
    const { startKubernetes, startProxy } = await import('@locks/test-servers');
    const server = await startKubernetes();
    const proxy = await startProxy(server, { protocol: 'raw' });
    const direct = await server.access();
    return {
      ...{ direct, proxied: { ...direct, url: at(direct.url, proxy) }, proxies: [proxy] },
      version: await server.ask<{ gitVersion: string }>('GET', '/version'),
      async stop() {
        await proxy.stop();
        await server.stop();
      },
    };
  },
  async prepare({ version, proxied, direct }) {
    // A server that has just started is slow, and each connection costs a handshake: no case shall wait for them.
    const locks = createLocks(kubernetesBackend(configFor(proxied ?? direct)));
    await Promise.all(
      Array.from({ length: 32 }, (_, index) => locks.lock(`warm ${index}`).run(() => undefined)),
    );
    await locks.close();
    return `Kubernetes ${version.gitVersion.slice(1)}`;
  },
  hasPrefix: true,
  createBackend: (access, _, prefix) =>
    kubernetesBackend(configFor(access), { ...(prefix !== undefined && { prefix }) }),
  faults: (direct) => ({
    wire: {
      servers: () => [serverIn(direct().url)],
      createBackend: ([address]) =>
        kubernetesBackend(configFor({ ...direct(), url: at(direct().url, address) })),
    },
    async evict(resource) {
      const backend = kubernetesBackend(configFor(direct()));
      await backend.forceRelease?.(resource, undefined, { now: () => performance.now(), deadline: Infinity });
      await backend.close();
    },
  }),
  timing: { slackMs: 1_500, idleGapMs: 7_500 },
});
