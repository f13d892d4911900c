import type { KubeConfig } from '@kubernetes/client-node';
import type { SlotStore, ResultStore } from '@locks/core/backend';
import { slotsIn, resultsIn } from '@locks/record-protocol/once';
import { LeaseStore } from './lease-store.ts';
import { checkOptions, type KubernetesBackendOptions } from './options.ts';

// setup: import { KubeConfig } from '@kubernetes/client-node'; const kubeConfig = new KubeConfig(); import { createLocks } from '@locks/core'; import { kubernetesBackend, kubernetesSlots } from '@locks/kubernetes'; import { day, once } from '@locks/once';
// setup: declare function sendInvoices(token: bigint): Promise<void>;
/**
 * The slot store in which `once` of `@locks/once` keeps the slots that were done: a Lease for each name, in the namespace of the locks or in another one.
 * It takes the arguments of {@link kubernetesBackend}.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; its functions throw errors of the client as they are, a `NoAnswerError` after
 * 10 s, and `LOCK_UNSUPPORTED` for an entry of a newer version
 * @example
 * ```ts
 * const locks = createLocks(kubernetesBackend(kubeConfig));
 * const options = { slot: day(), atMostMs: 600_000, retry: 'next-machine', slots: kubernetesSlots(kubeConfig) } as const;
 * await once(locks, 'invoices', ({ fencingToken }) => sendInvoices(fencingToken), options);
 * ```
 */
export function kubernetesSlots(kubeConfig: KubeConfig, options?: KubernetesBackendOptions): SlotStore {
  const what = 'kubernetesSlots()';
  const checked = checkOptions(kubeConfig, options, what);
  return slotsIn(new LeaseStore(checked), checked.prefix, what);
}

// setup: import { KubeConfig } from '@kubernetes/client-node'; const kubeConfig = new KubeConfig(); import { createLocks } from '@locks/core'; import { kubernetesBackend, kubernetesResults } from '@locks/kubernetes'; import { coalesce } from '@locks/once';
// setup: declare function fetchPrices(signal: AbortSignal): Promise<Record<string, number>>;
/**
 * The store in which `coalesce` of `@locks/once` shares results, each of which ends by the time of the store. It takes the arguments of
 * {@link kubernetesBackend}.
 *
 * @throws LockError `LOCK_INVALID_ARGUMENT` for a bad option; its functions throw errors of the client as they are, a `NoAnswerError` after
 * 10 s, and `set` `LOCK_LOST` with reason `taken-over` when a newer token wrote before
 * @example
 * ```ts
 * const locks = createLocks(kubernetesBackend(kubeConfig));
 * const options = { store: kubernetesResults(kubeConfig), shareForMs: 5_000 };
 * const prices = await coalesce(locks, 'prices', ({ signal }) => fetchPrices(signal), options);
 * ```
 */
export function kubernetesResults(kubeConfig: KubeConfig, options?: KubernetesBackendOptions): ResultStore {
  const what = 'kubernetesResults()';
  const checked = checkOptions(kubeConfig, options, what);
  return resultsIn(new LeaseStore(checked), checked.prefix, what);
}
