import { etcdHarness } from './etcd/etcd-harness.ts';

/** etcd, a cluster of three. */
export default etcdHarness(import.meta.url, 'cluster');
