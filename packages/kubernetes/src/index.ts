export { kubernetesBackend } from './kubernetes-backend.ts';
export type { KubernetesBackendOptions } from './options.ts';
