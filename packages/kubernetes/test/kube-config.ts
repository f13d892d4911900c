import { KubeConfig } from '@kubernetes/client-node';
import type { KubernetesAccess } from '@locks/test-servers';

/** A loaded config for a server of the tests; with a proxy's address in place of the server's, through it. */
export function kubeConfig({ url, certificate, token }: KubernetesAccess, namespace?: string): KubeConfig {
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: [{ name: 'c', server: url, caData: Buffer.from(certificate).toString('base64') }],
    users: [{ name: 'u', token }],
    contexts: [{ name: 'x', cluster: 'c', user: 'u', ...(namespace !== undefined && { namespace }) }],
    currentContext: 'x',
  });
  return config;
}
