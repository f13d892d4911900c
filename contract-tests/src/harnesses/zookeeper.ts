import { zookeeperHarness } from './zookeeper/zookeeper-harness.ts';

/** One server. */
export default zookeeperHarness(import.meta.url, 'node-zookeeper-client', 'standalone');
