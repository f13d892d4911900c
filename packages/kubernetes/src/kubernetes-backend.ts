import type { LockBackend } from '@locks/core';
import { createRecordBackend, type RecordCapabilities } from '@locks/record-protocol';
import { LeaseStore } from './lease-store.ts';
import { checkOptions, type KubernetesBackendOptions } from './options.ts';

// setup: import { createLocks } from '@locks/core'; import { kubernetesBackend } from '@locks/kubernetes'; import { KubeConfig } from '@kubernetes/client-node';
/**
 * A backend on the API server of a Kubernetes cluster: each lock is a Lease of `coordination.k8s.io/v1`. No request is sent
 * before the first lock is used.
 *
 * @example
 * ```ts
 * const kubeConfig = new KubeConfig();
 * kubeConfig.loadFromCluster(); // in a pod
 * const locks = createLocks(kubernetesBackend({ kubeConfig }));
 * ```
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad or an unknown option
 */
export function kubernetesBackend(options: KubernetesBackendOptions): LockBackend<RecordCapabilities> {
  const checked = checkOptions(options);
  return createRecordBackend(new LeaseStore(checked), { prefix: checked.prefix });
}
