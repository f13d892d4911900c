import { invalidArgument, mustBe, optional, type OptionTable, readOptions, text } from '@locks/core/backend';
import type { KubeConfig } from '@kubernetes/client-node';
import { prefixOption } from '@locks/record-protocol';

/** The options of `kubernetesBackend`. */
export interface KubernetesBackendOptions {
  /**
   * A `KubeConfig` of `@kubernetes/client-node` that has been loaded. Its current context says which cluster it is, and who asks.
   * Credentials that change, as those of a pod do, are read again.
   */
  readonly kubeConfig: KubeConfig;
  /**
   * The namespace of the Leases; it must exist.
   * @defaultValue that of the current context, which in a pod is the pod's, else `'default'`
   */
  readonly namespace?: string;
  /**
   * What all keys begin with: at most 128 characters. Locks with different prefixes have nothing in common.
   * @defaultValue `'locks/'`
   */
  readonly prefix?: string;
}

export interface CheckedKubernetesOptions {
  readonly kubeConfig: KubeConfig;
  readonly namespace: string;
  readonly prefix: string;
}

const TABLE = {
  kubeConfig: asKubeConfig,
  namespace: optional(
    text('the name of a namespace: 1 to 63 of a-z 0-9 -', /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/),
  ),
  prefix: prefixOption,
} satisfies OptionTable<KubernetesBackendOptions>;

export function checkOptions(options: KubernetesBackendOptions): CheckedKubernetesOptions {
  const { kubeConfig, namespace, prefix } = readOptions('kubernetesBackend()', options, TABLE);
  return { kubeConfig, prefix, namespace: namespace ?? namespaceOf(kubeConfig) };
}

function namespaceOf(config: KubeConfig): string {
  return config.getContextObject(config.getCurrentContext())?.namespace ?? 'default';
}

/** Recognizes a config by its methods, since another copy of the library may have made it. */
function asKubeConfig(given: unknown, what: string): KubeConfig {
  const config = (given ?? {}) as Partial<KubeConfig>;
  const methods = [config.getCurrentCluster, config.getContextObject, config.applyToHTTPSOptions];
  if (!methods.every((method) => typeof method === 'function')) {
    throw mustBe(what, 'a KubeConfig of @kubernetes/client-node (no client made of it)', given);
  }
  if ((given as KubeConfig).getCurrentCluster() === null) {
    throw invalidArgument(
      `${what} has no current cluster. Load it first: loadFromDefault(), or loadFromCluster() in a pod.`,
    );
  }
  return given as KubeConfig;
}
