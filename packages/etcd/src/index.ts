export { type EtcdCapabilities, etcdBackend } from './etcd-backend.ts';
export type { EtcdBackendOptions, EtcdClient } from './options.ts';
