import type { KubeConfig } from '@kubernetes/client-node';
import { type Diagnosis, type Finding, found, oldVersion } from '@locks/core/doctor';
import { KubeApi } from './kube-api.ts';
import { KubeStatusError } from './kube-error.ts';
import { checkOptions, type KubernetesBackendOptions } from './options.ts';
import { SERVER_VERSIONS } from './server-versions.ts';

const LIMIT_MS = 10_000;
/** What is done with Leases, and what becomes of the locks without the right. */
const VERBS = [
  ['get', 'error', 'no lock works'],
  ['create', 'error', 'no lock works'],
  ['update', 'error', 'no lock works'],
  ['delete', 'warning', 'Leases of processes that have waited stay'],
  ['list', 'warning', 'the locks cannot be listed, and waiters are not told of changes'],
  ['watch', 'warning', 'waiters are not told of changes, and poll'],
] as const;

interface Review {
  readonly status?: { readonly allowed?: boolean };
}

// setup: import { KubeConfig } from '@kubernetes/client-node'; import { examineKubernetes } from '@locks/kubernetes/doctor'; const kubeConfig = new KubeConfig();
/**
 * Examines what the user of a cluster may do with the Leases of a namespace. Nothing is written.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; errors of the API server as they are
 * @example
 * ```ts
 * kubeConfig.loadFromCluster(); // in a pod
 * const { findings } = await examineKubernetes(kubeConfig);
 * for (const { severity, id, what } of findings) console.warn(severity, id, what);
 * ```
 */
export async function examineKubernetes(
  kubeConfig: KubeConfig,
  options?: KubernetesBackendOptions,
): Promise<Diagnosis> {
  const { namespace } = checkOptions(kubeConfig, options, 'examineKubernetes()');
  const api = new KubeApi(kubeConfig);
  const {
    body: { gitVersion },
  } = await api.send<{ readonly gitVersion: string }>({
    ...{ method: 'GET', path: '/version', signal: AbortSignal.timeout(LIMIT_MS) },
  });
  const findings = await Promise.all(
    VERBS.map(async ([verb, severity, without]) => {
      if (await may(api, namespace, verb)) return [];
      const what = `this user may not ${verb} Leases in the namespace ${namespace}: ${without}`;
      const toDo = 'bind a Role with the verbs that the page of the backend lists';
      return [{ id: `kubernetes/${verb}`, severity, what, toDo } satisfies Finding];
    }),
  );
  const version = gitVersion.replace(/^v/, '');
  const age = oldVersion('kubernetes', version, SERVER_VERSIONS.kubernetes);
  return { store: 'kubernetes', version, findings: [...found(age), ...findings.flat()] };
}

async function may(api: KubeApi, namespace: string, verb: string): Promise<boolean> {
  const path = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';
  const resourceAttributes = { namespace, verb, group: 'coordination.k8s.io', resource: 'leases' };
  const body = {
    ...{ apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectAccessReview' },
    spec: { resourceAttributes },
  };
  const signal = AbortSignal.timeout(LIMIT_MS);
  try {
    const answer = await api.send<Review>({ method: 'POST', path, body, signal });
    return answer.body.status?.allowed === true;
  } catch (error) {
    // Who may not ask may do the rest all the same: tried locks show it.
    if (error instanceof KubeStatusError && error.status === 403) return true;
    throw error;
  }
}
