import {
  invalidArgument,
  optional,
  type OptionTable,
  readClient,
  readOptions,
  text,
} from '@locks/core/backend';
import type { KubeConfig } from '@kubernetes/client-node';
import { expiryOption, prefixOption, skewOption } from '@locks/record-protocol';

/** The options of `kubernetesBackend`. */
export interface KubernetesBackendOptions {
  /**
   * The namespace of the Leases; it must exist.
   * @defaultValue that of the current context, which in a pod is the pod's, else `'default'`
   */
  readonly namespace?: string;
  /**
   * What all keys begin with, at most 128 characters without `lock/`, which stands between them and the name. Locks with different
   * prefixes have nothing in common.
   * @defaultValue `'locks/'`
   */
  readonly prefix?: string;
  /**
   * `'clock'`: the lock of a dead holder is free by the time that the `Date` header of the API server's answers tells, for a process too that has just started.
   * `'observed'`: only for a process that has seen it unchanged for its ttl; one that lives or waits for less never gets it. The same in
   * all processes.
   *
   * @defaultValue `'clock'`
   */
  readonly expiry?: 'clock' | 'observed';
  /**
   * How far apart the clocks of the servers may be, in milliseconds, 0 to 60000. The locks of dead holders are free that much later.
   *
   * @defaultValue 1000
   */
  readonly skewMs?: number;
}

export interface CheckedKubernetesOptions {
  readonly kubeConfig: KubeConfig;
  readonly namespace: string;
  readonly prefix: string;
  readonly expiry: 'clock' | 'observed';
  readonly skewMs: number;
}

const TABLE = {
  namespace: optional(
    text('the name of a namespace: 1 to 63 of a-z 0-9 -', /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/),
  ),
  prefix: prefixOption,
  expiry: expiryOption,
  skewMs: skewOption(1_000),
} satisfies OptionTable<KubernetesBackendOptions>;

const ELSEWHERE = { kubeConfig: 'the first argument' };

export function checkOptions(
  given: unknown,
  options: KubernetesBackendOptions | undefined,
  what = 'kubernetesBackend()',
): CheckedKubernetesOptions {
  const allowed = 'a KubeConfig of @kubernetes/client-node (no client made of it)';
  const kubeConfig = readClient(what, 'kubeConfig', given, allowed, isKubeConfig);
  if ((kubeConfig.getCurrentCluster() as unknown) === null) {
    throw invalidArgument(
      `${what}: the kubeConfig has no current cluster. Load it first: loadFromDefault(), or loadFromCluster() in a pod.`,
    );
  }
  const read = readOptions(what, options, TABLE, ELSEWHERE);
  return { kubeConfig, ...read, namespace: read.namespace ?? namespaceOf(kubeConfig) };
}

function namespaceOf(config: KubeConfig): string {
  return config.getContextObject(config.getCurrentContext())?.namespace ?? 'default';
}

/** Recognizes a config by its methods, since another copy of the library may have made it. */
function isKubeConfig(given: unknown): given is KubeConfig {
  const config = (given ?? {}) as Partial<KubeConfig>;
  const methods = [config.getCurrentCluster, config.getContextObject, config.applyToHTTPSOptions];
  return methods.every((method) => typeof method === 'function');
}
