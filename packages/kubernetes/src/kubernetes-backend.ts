import type { KubeConfig } from '@kubernetes/client-node';
import type { LockBackend } from '@locks/core/backend';
import { createRecordBackend, type RecordCapabilities } from '@locks/record-protocol';
import { LeaseStore } from './lease-store.ts';
import { checkOptions, type KubernetesBackendOptions } from './options.ts';

// setup: import { createLocks } from '@locks/core'; import { kubernetesBackend } from '@locks/kubernetes'; import { KubeConfig } from '@kubernetes/client-node';
/**
 * A backend on the API server of a Kubernetes cluster: each lock is a Lease of `coordination.k8s.io/v1`. No request is sent
 * before the first lock is used.
 *
 * @param kubeConfig - a `KubeConfig` of `@kubernetes/client-node` that has been loaded. Its current context says which cluster it is, and who
 * asks. Credentials that change, as those of a pod do, are read again.
 * @example
 * ```ts
 * const kubeConfig = new KubeConfig();
 * kubeConfig.loadFromCluster(); // in a pod
 * const locks = createLocks(kubernetesBackend(kubeConfig));
 * ```
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad or an unknown option
 */
export function kubernetesBackend(
  kubeConfig: KubeConfig,
  options?: KubernetesBackendOptions,
): LockBackend<RecordCapabilities> {
  const checked = checkOptions(kubeConfig, options);
  return createRecordBackend(new LeaseStore(checked), { prefix: checked.prefix });
}
