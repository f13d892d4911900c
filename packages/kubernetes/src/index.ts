export { kubernetesBackend } from './kubernetes-backend.ts';
export type { KubernetesBackendOptions } from './options.ts';
export { kubernetesSlots, kubernetesResults } from './slot-store.ts';
