export type { Proxy } from '@locks/core/conformance/proxy';
export { type DynamodbOptions, DynamodbServer, startDynamodb } from './aws/dynamodb-server.ts';
export { MotoServer, startMoto } from './aws/moto-server.ts';
export { seaweedfsCredentials, SeaweedfsServer, startSeaweedfs } from './aws/seaweedfs-server.ts';
export { type ServerConditions, underConditions } from './conditions/conditions.ts';
export { canSeparateNetworks, ProcessNetwork } from './conditions/process-network.ts';
export { EtcdCluster } from './etcd/etcd-cluster.ts';
export { EtcdServer, type EtcdStatus } from './etcd/etcd-server.ts';
export { type EtcdClusterOptions, type EtcdOptions, startEtcd, startEtcdCluster } from './etcd/start-etcd.ts';
export { fetchVersion } from '../fetch-version.mjs';
export { canFindServer, findServer } from './find-server.mjs';
export { freePort, isFree } from './free-port.ts';
export { type KubernetesAccess, KubernetesApiServer } from './kubernetes/api-server.ts';
export { type KubernetesOptions, startKubernetes } from './kubernetes/start-kubernetes.ts';
export { makeDirectory } from './managed-server.ts';
export { type MariadbOptions, MariadbServer, startMariadb } from './mysql/mariadb-server.ts';
export { type MongodbOptions, MongodbServer, startMongodb } from './mongodb/mongodb-server.ts';
export { NatsCluster } from './nats/nats-cluster.ts';
export { NatsServer } from './nats/nats-server.ts';
export { type NatsClusterOptions, type NatsOptions, startNats, startNatsCluster } from './nats/start-nats.ts';
export { call, granted, handOffOverCutChannel, Participant, request } from './participant.ts';
export { type PostgresOptions, PostgresServer, startPostgres } from './postgres/postgres-server.ts';
export { PostgresReplyError, type QueryRow } from './postgres/simple-query.ts';
export { type PgbouncerOptions, PgbouncerServer, startPgbouncer } from './postgres/pgbouncer-server.ts';
export {
  type PrometheusAlert,
  type PrometheusOptions,
  PrometheusServer,
  startPrometheus,
} from './prometheus/prometheus-server.ts';
export type { RedisProxy } from './proxy/redis-proxy.ts';
export type { LoseOptions, RedisProxyConnection, RedisRequest } from './proxy/redis-proxy-connection.ts';
export { startProxy } from './proxy/start-proxy.ts';
export { type RestBridge, startRestBridge } from './redis/rest-bridge.ts';
export type { MigrationHooks } from './redis/migrate-slot.ts';
export { type ClusterNodeView, RedisCluster } from './redis/redis-cluster.ts';
export { RedisServer } from './redis/redis-server.ts';
export { encodeCommand, FrameReader, RedisReplyError, type RespValue } from './redis/resp.ts';
export { sendCommands } from './redis/send-command.ts';
export { slotOf } from './redis/slot-of.ts';
export { type ClusterOptions, startCluster } from './redis/start-cluster.ts';
export {
  type RedisOptions,
  type ReplicatedRedis,
  startRedis,
  startReplicated,
  waitUntilLinked,
} from './redis/start-redis.ts';
export { SentinelDeployment, type SentinelOptions, startSentinel } from './redis/start-sentinel.ts';
export { type WaitOptions, waitUntil } from './wait-until.ts';
export { fourLetterWord } from './zookeeper/four-letter-word.ts';
export {
  startZookeeperEnsemble,
  type ZooKeeperEnsemble,
  type ZooKeeperEnsembleOptions,
} from './zookeeper/start-zookeeper-ensemble.ts';
export {
  startZookeeper,
  type ZooKeeperMode,
  type ZooKeeperOptions,
  ZooKeeperServer,
} from './zookeeper/zookeeper-server.ts';
