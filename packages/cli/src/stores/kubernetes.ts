import { KubeConfig } from '@kubernetes/client-node';
import { kubernetesBackend, kubernetesSlots } from '@locks/kubernetes';
import { examineKubernetes } from '@locks/kubernetes/doctor';
import { readNamedUrl, type StoreUrl } from '../store-url.ts';
import type { OpenBackend } from './open-backend.ts';

const FORM = 'kubernetes://NAMESPACE';

/** The cluster is that of the pod, or what `KUBECONFIG` or `~/.kube/config` say. */
export async function openKubernetes(url: StoreUrl, prefix: string | undefined): Promise<OpenBackend> {
  const { host: namespace } = readNamedUrl(url, FORM, []);
  const kubeConfig = new KubeConfig();
  kubeConfig.loadFromDefault();
  const options = {
    ...(namespace !== '' && { namespace }),
    ...(prefix !== undefined && { prefix }),
  };
  return {
    backend: kubernetesBackend(kubeConfig, options),
    openSlots: async () => kubernetesSlots(kubeConfig, options),
    examine: () => examineKubernetes(kubeConfig, options),
  };
}
