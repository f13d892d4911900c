import { KubeConfig } from '@kubernetes/client-node';
import type { KubernetesAccess } from '@locks/test-servers';

export function configFor({ url, certificate, token }: KubernetesAccess): KubeConfig {
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: [{ name: 'c', server: url, caData: Buffer.from(certificate).toString('base64') }],
    users: [{ name: 'u', token }],
    contexts: [{ name: 'x', cluster: 'c', user: 'u' }],
    currentContext: 'x',
  });
  return config;
}
