export { type EtcdCapabilities, etcdBackend } from './etcd-backend.ts';
export { etcdSlots } from './slot-store.ts';
export {
  clientOptions,
  type EtcdBackendOptions,
  type EtcdClient,
  type EtcdSlotsOptions,
} from './options.ts';
export { etcdResults } from './result-store.ts';
