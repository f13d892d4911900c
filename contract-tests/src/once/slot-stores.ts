/** The slot store and the result store of every store, on the server of a harness. A machine loads the client of its own store alone. */
import type { SlotStore, ResultStore } from '@locks/core/backend';
import type { KubernetesAccess } from '@locks/test-servers';
import type { PostgresAddress } from '../harnesses/postgres/deployment.ts';
import type { RedisAddress } from '../harnesses/redis/address.ts';
import type { RecordKind } from './commands.ts';

interface Stores {
  readonly slots: SlotStore;
  readonly results: ResultStore;
}

/** What the harness has told of its server. */
function addressIn<T>(name: string): T {
  return JSON.parse(process.env[`LOCKS_CONFORMANCE_${name}`] ?? 'null') as T;
}

function redisUrl(): string {
  return addressIn<RedisAddress & { readonly url: string }>('REDIS').url;
}

export const storesOf: Readonly<Record<RecordKind, () => Promise<Stores>>> = {
  async 'redis-ioredis'() {
    const { redisSlots, redisResults } = await import('@locks/redis-ioredis');
    const { Redis } = await import('ioredis');
    const client = new Redis(redisUrl());
    return { slots: redisSlots(client), results: redisResults(client) };
  },
  async 'redis-node'() {
    const { redisSlots, redisResults } = await import('@locks/redis-node');
    const { createClient } = await import('redis');
    const client = await createClient({ url: redisUrl() }).connect();
    return { slots: redisSlots(client), results: redisResults(client) };
  },
  async 'postgres-lease'() {
    const { postgresSlots, postgresResults } = await import('@locks/postgres');
    const { default: pg } = await import('pg');
    const connectionString = addressIn<PostgresAddress>('POSTGRES').url;
    const pool = new pg.Pool({ connectionString, max: 2, allowExitOnIdle: true });
    return { slots: postgresSlots(pool), results: postgresResults(pool) };
  },
  async mysql() {
    const { mysqlSlots, mysqlResults } = await import('@locks/mysql');
    const { createPool } = await import('mysql2/promise');
    const pool = createPool({ uri: addressIn<string>('MYSQL'), connectionLimit: 2 });
    return { slots: mysqlSlots(pool), results: mysqlResults(pool) };
  },
  async etcd() {
    const { clientOptions, etcdSlots, etcdResults } = await import('@locks/etcd');
    const { Etcd3 } = await import('etcd3');
    const client = new Etcd3(clientOptions({ hosts: addressIn<string[]>('ETCD') }));
    return { slots: etcdSlots(client), results: etcdResults(client) };
  },
  async zookeeper() {
    const { zookeeperSlots, zookeeperResults } = await import('@locks/zookeeper');
    const servers = addressIn<string>('ZOOKEEPER');
    return { slots: zookeeperSlots(servers), results: zookeeperResults(servers) };
  },
  async 'zookeeper-native'() {
    const { zookeeperSlots, zookeeperResults } = await import('@locks/zookeeper/native');
    const { nativeLibrary } = await import('../harnesses/zookeeper/native-library.ts');
    const [servers, options] = [addressIn<string>('ZOOKEEPER'), { library: await nativeLibrary() }];
    return { slots: zookeeperSlots(servers, options), results: zookeeperResults(servers, options) };
  },
  async sqlite() {
    const { sqliteSlots, sqliteResults } = await import('@locks/sqlite');
    const path = `${process.env['LOCKS_SQLITE_PATH']}.slots`;
    return { slots: sqliteSlots(path), results: sqliteResults(path) };
  },
  async file() {
    const { fileSlots, fileResults } = await import('@locks/file');
    const folder = process.env['LOCKS_FILE_FOLDER'] as string;
    return { slots: fileSlots(folder), results: fileResults(folder) };
  },
  async dynamodb() {
    const { dynamodbSlots, dynamodbResults } = await import('@locks/dynamodb');
    const { DynamoDBClient } = await import('@aws-sdk/client-dynamodb');
    const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
    const endpoint = addressIn<string>('DYNAMODB');
    const client = new DynamoDBClient({ endpoint, region: 'eu-central-1', credentials });
    const options = { table: 'locks' };
    return { slots: dynamodbSlots(client, options), results: dynamodbResults(client, options) };
  },
  async s3() {
    const { s3Slots, s3Results } = await import('@locks/s3');
    const { BUCKET, openS3 } = await import('../harnesses/s3/s3-harness.ts');
    const client = openS3(addressIn<string>('S3_URL'));
    return { slots: s3Slots(client, { bucket: BUCKET }), results: s3Results(client, { bucket: BUCKET }) };
  },
  async nats() {
    const { natsSlots, natsResults } = await import('@locks/nats');
    const { connect } = await import('@nats-io/transport-node');
    const connection = await connect({ servers: addressIn<string[]>('NATS') });
    return { slots: natsSlots(connection), results: natsResults(connection) };
  },
  async mongodb() {
    const { mongodbSlots, mongodbResults } = await import('@locks/mongodb');
    const { MongoClient } = await import('mongodb');
    const client = new MongoClient(addressIn<string>('MONGODB'));
    const collection = client.db('locks').collection('locks');
    return { slots: mongodbSlots(collection), results: mongodbResults(collection) };
  },
  async kubernetes() {
    const { kubernetesSlots, kubernetesResults } = await import('@locks/kubernetes');
    const { configFor } = await import('../harnesses/kubernetes/kube-config.ts');
    const kubeConfig = configFor(addressIn<KubernetesAccess>('KUBERNETES'));
    return { slots: kubernetesSlots(kubeConfig), results: kubernetesResults(kubeConfig) };
  },
};
