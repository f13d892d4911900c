import { zookeeperHarness } from './zookeeper/zookeeper-harness.ts';

/** The native client, which is compiled on the way. */
export default zookeeperHarness(import.meta.url, 'zookeeper', 'standalone');
