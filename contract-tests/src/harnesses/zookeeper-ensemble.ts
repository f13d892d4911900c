import { zookeeperHarness } from './zookeeper/zookeeper-harness.ts';

/** Three servers, each client at any of them. */
export default zookeeperHarness(import.meta.url, 'node-zookeeper-client', 'ensemble');
