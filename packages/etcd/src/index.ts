export { type EtcdCapabilities, etcdBackend } from './etcd-backend.ts';
export { clientOptions, type EtcdBackendOptions, type EtcdClient } from './options.ts';
