export { EtcdCluster } from './etcd/etcd-cluster.ts';
export { EtcdServer, type EtcdStatus } from './etcd/etcd-server.ts';
export { type EtcdClusterOptions, type EtcdOptions, startEtcd, startEtcdCluster } from './etcd/start-etcd.ts';
export { findServer } from './find-server.mjs';
export { freePort, isFree } from './free-port.ts';
export { MariadbServer } from './mysql/mariadb-server.ts';
export { type MariadbOptions, startMariadb } from './mysql/start-mariadb.ts';
export { PostgresServer } from './postgres/postgres-server.ts';
export { PostgresReplyError, type Row } from './postgres/simple-query.ts';
export { PgbouncerServer, type PgbouncerOptions, startPgbouncer } from './postgres/start-pgbouncer.ts';
export { type PostgresOptions, startPostgres } from './postgres/start-postgres.ts';
export { type Direction, type FaultScope, type LoseOptions, Proxy, startProxy } from './proxy/proxy.ts';
export type { ProxyConnection, ProxyRequest } from './proxy/proxy-connection.ts';
export type { MigrationHooks } from './redis/migrate-slot.ts';
export { type ClusterNodeView, RedisCluster } from './redis/redis-cluster.ts';
export { RedisServer } from './redis/redis-server.ts';
export { RedisReplyError, type Reply } from './redis/resp.ts';
export { type RedisAddress, sendCommands } from './redis/send-command.ts';
export { slotOf } from './redis/slot-of.ts';
export { type ClusterOptions, startCluster } from './redis/start-cluster.ts';
export { type RedisOptions, type ReplicatedRedis, startRedis, startReplicated } from './redis/start-redis.ts';
export { SentinelDeployment, type SentinelOptions, startSentinel } from './redis/start-sentinel.ts';
export { type WaitOptions, waitUntil } from './wait-until.ts';
export {
  startZookeeperEnsemble,
  type ZooKeeperEnsemble,
  type ZooKeeperEnsembleOptions,
} from './zookeeper/start-zookeeper-ensemble.ts';
export { startZookeeper } from './zookeeper/start-zookeeper.ts';
export { type ZooKeeperMode, ZooKeeperServer } from './zookeeper/zookeeper-server.ts';
