import { etcdHarness } from './etcd/etcd-harness.ts';

/** etcd, one server. */
export default etcdHarness(import.meta.url, 'standalone');
