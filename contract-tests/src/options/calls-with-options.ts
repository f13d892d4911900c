// One file, a list: an entry for each exported function that has options.
import { randomUUID } from 'node:crypto';
import {
  createLocks,
  Locked,
  locked,
  type LockManager,
  type Lock,
  type MultiLock,
  type Semaphore,
} from '@locks/core';
import { cohortBackend } from '@locks/cohort';
import { defineHarness, runConformance } from '@locks/core/conformance';
import { testLockConformance as testWithNode } from '@locks/core/conformance/node-test';
import { testLockConformance as testWithVitest } from '@locks/core/conformance/vitest';
import { type Proxy, startProxy } from '@locks/core/conformance/proxy';
import { renewalThread } from '@locks/core/renewal-thread';
import { lintLocks } from '@locks/core/lint';
import { adopt, transfer } from '@locks/core/transfer';
import { checkTrace, parseTrace, recordTrace } from '@locks/history';
import { prove } from '@locks/prove';
import { quorumBackend } from '@locks/quorum';
import { dynamodbBackend, dynamodbSlots, dynamodbResults } from '@locks/dynamodb';
import { examineDynamodb } from '@locks/dynamodb/doctor';
import { clientOptions, etcdBackend, etcdSlots, etcdResults } from '@locks/etcd';
import { examineEtcd } from '@locks/etcd/doctor';
import { kubernetesBackend, kubernetesSlots, kubernetesResults } from '@locks/kubernetes';
import { examineKubernetes } from '@locks/kubernetes/doctor';
import { election } from '@locks/leader';
import { memoryBackend } from '@locks/memory';
import { mongodbBackend, mongodbSlots, mongodbResults } from '@locks/mongodb';
import { examineMongodb } from '@locks/mongodb/doctor';
import { mysqlBackend, mysqlSlots, mysqlResults, schemaStatements } from '@locks/mysql';
import { examineMysql } from '@locks/mysql/doctor';
import { natsBackend, natsSlots, natsResults } from '@locks/nats';
import { examineNats } from '@locks/nats/doctor';
import { Locked as lockedInNest, Once } from '@locks/nestjs';
import { coalesce, day, every, newestWins, once, resetSlot, runCoordinator } from '@locks/once';
import { meterLocks, traceLocks } from '@locks/opentelemetry';
import {
  advisoryLockInTransaction,
  fencedUpdate,
  postgresAdvisoryBackend,
  postgresLeaseBackend,
  postgresSlots,
  postgresResults,
  schemaStatements as postgresSchemaStatements,
  tryAdvisoryLockInTransaction,
} from '@locks/postgres';
import * as onBunSql from '@locks/postgres/bun-sql';
import { examinePostgres } from '@locks/postgres/doctor';
import * as onPglite from '@locks/postgres/pglite';
import * as onPostgresJs from '@locks/postgres/postgres-js';
import { examinePostgres as examineByPostgresJs } from '@locks/postgres/postgres-js/doctor';
import { createRecordBackend } from '@locks/record-protocol';
import * as onGlide from '@locks/redis-glide';
import * as onIoredis from '@locks/redis-ioredis';
import * as onNodeRedis from '@locks/redis-node';
import {
  createRedisBackend,
  fencedSetThrough,
  redisSlotsThrough,
  redisResultsThrough,
  type RedisPort,
} from '@locks/redis-protocol';
import { type BunRedisClient, redisBackend as onBunRedis } from '@locks/redis-protocol/bun';
import { createRedissonBackend } from '@locks/redisson';
import { redissonBackend as redissonOnIoredis } from '@locks/redisson/ioredis';
import { redissonBackend as redissonOnNodeRedis } from '@locks/redisson/redis';
import { s3Backend, s3Slots, s3Results } from '@locks/s3';
import { examineS3 } from '@locks/s3/doctor';
import { fileBackend, fileResults, fileSlots } from '@locks/file';
import { examineFile } from '@locks/file/doctor';
import * as lockfile from '@locks/file/proper-lockfile';
import { sqliteBackend } from '@locks/sqlite';
import { examineSqlite } from '@locks/sqlite/doctor';
import {
  fencedSet as fencedSetOnUpstash,
  upstashBackend,
  upstashSlots,
  upstashResults,
} from '@locks/upstash';
import { webLocks } from '@locks/web-locks';
import { zookeeperBackend, zookeeperSlots, zookeeperResults } from '@locks/zookeeper';
import { examineZookeeper } from '@locks/zookeeper/doctor';
import * as onNativeZookeeper from '@locks/zookeeper/native';
import { KubeConfig } from '@kubernetes/client-node';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { S3Client } from '@aws-sdk/client-s3';
import { GlideClient } from '@valkey/valkey-glide';
import { Etcd3 } from 'etcd3';
import { Redis } from 'ioredis';
import type { NatsConnection } from '@nats-io/nats-core';
import { MongoClient } from 'mongodb';
import { createPool } from 'mysql2';
import pg from 'pg';
import postgres from 'postgres';
import { createClient } from 'redis';
import { HttpRecordStore } from '../fixtures/http-record-store.ts';

/** How to call a public function with options, and options that it takes. */
export interface CallWithOptions {
  readonly call: (options: never) => unknown;
  readonly valid?: Readonly<Record<string, unknown>>;
}

const locks: LockManager = createLocks(memoryBackend());
const fencedLocks = createLocks(memoryBackend());
const lock: Lock = locks.lock('a');
const slots: Semaphore = locks.semaphore('b', 3);
const set: MultiLock = locks.all([lock]);
const harness = defineHarness({ module: import.meta.url, createBackend: () => memoryBackend() });
// No call reaches a server, so none needs to run.
const ioredis = new Redis({ lazyConnect: true });
const mysqlPool = createPool('mysql://nobody@127.0.0.1:1/nowhere');
const nodeRedis = createClient();
const glide = await GlideClient.createClient({
  addresses: [{ host: '127.0.0.1', port: 1 }],
  lazyConnect: true,
});
const kubeConfig = new KubeConfig();
kubeConfig.loadFromClusterAndUser(
  { name: 'c', server: 'https://127.0.0.1:1', skipTLSVerify: true },
  { name: 'u' },
);
const upstash = { url: 'http://127.0.0.1:1', token: 'x' };
const noPort = {} as RedisPort;
const client = new pg.Client();
const connectionString = 'postgres://nobody@127.0.0.1:1/nowhere';
const sql = postgres(connectionString);
const pglite = { exec: noCall, query: noCall, transaction: noCall, waitReady: Promise.resolve() } as never;
const bunSql = Object.assign(() => undefined, {
  options: { adapter: 'postgres' },
  unsafe: noCall,
  close: noCall,
}) as unknown as onBunSql.BunSql;
const etcd = new Etcd3({ hosts: 'http://127.0.0.1:1' });
const natsConnection = {
  ...{ request: noCall, subscribe: noCall, isClosed: () => true, status: noStatus },
} as unknown as NatsConnection;
const bunRedis = {
  duplicate: noCall,
  send: noCall,
  subscribe: noCall,
  bufferedAmount: 0,
} as unknown as BunRedisClient;
const work = (): never => {
  throw new Error('the work began');
};

function noCall(): Promise<never> {
  return Promise.reject(new Error('nothing is sent'));
}

async function* noStatus(): AsyncGenerator<never> {}

/** What each entry of @locks/postgres has, whatever its driver. */
function onEveryDriver(entry: string): Record<string, CallWithOptions> {
  return {
    [`${entry}: fencedUpdate(update)`]: {
      call: (update) => fencedUpdate(client, update),
      valid: { table: 'stock', key: { sku: 1 }, set: { quantity: 1 }, token: 1n },
    },
    [`${entry}: advisoryLockInTransaction(options)`]: {
      call: (options) => advisoryLockInTransaction(client, 'a', options),
    },
    [`${entry}: postgresSlots(options)`]: { call: (options) => postgresSlots(client, options) },
    [`${entry}: schemaStatements(options)`]: { call: (options) => postgresSchemaStatements(options) },
    [`${entry}: postgresResults(options)`]: { call: (options) => postgresResults(client, options) },
    [`${entry}: tryAdvisoryLockInTransaction(options)`]: {
      call: (options) => tryAdvisoryLockInTransaction(client, 'a', options),
    },
  };
}

/** What each store of the record kernel has: its functions take the same arguments. */
function onRecordStore<C, O>(
  entry: string,
  functions: Readonly<Record<string, (client: C, options: O) => unknown>>,
  examine: (client: C, options: O) => unknown,
  client: C,
  valid: Readonly<Record<string, unknown>> = {},
): Record<string, CallWithOptions> {
  return Object.fromEntries([
    ...Object.entries(functions).map(([name, call]) => [
      `${entry}: ${name}(options)`,
      { call: (options: O) => call(client, options), valid },
    ]),
    [`${entry}/doctor: ${examine.name}(options)`, { call: (options: O) => examine(client, options), valid }],
  ]) as Record<string, CallWithOptions>;
}

/** The functions of an entry for ZooKeeper, which take the same arguments. */
function onZookeeper<O>(
  entry: string,
  all: Readonly<
    Record<
      'zookeeperBackend' | 'zookeeperSlots' | 'zookeeperResults',
      (servers: string, options: O) => unknown
    >
  >,
  valid: Readonly<Record<string, unknown>>,
): Record<string, CallWithOptions> {
  const { zookeeperBackend, zookeeperSlots, zookeeperResults } = all;
  return Object.fromEntries(
    Object.entries({ zookeeperBackend, zookeeperSlots, zookeeperResults }).map(([name, call]) => [
      `${entry}: ${name}(options)`,
      { call: (options: O) => call('127.0.0.1:1', options), valid },
    ]),
  ) as Record<string, CallWithOptions>;
}

async function onProxy(use: (proxy: Proxy) => void): Promise<void> {
  const proxy = await startProxy({ host: '127.0.0.1', port: 1 });
  try {
    use(proxy);
  } finally {
    await proxy.stop();
  }
}

/** The calls by the keys of `publicOptions()`. */
export const callsWithOptions: Readonly<Record<string, CallWithOptions>> = {
  '@locks/core: createLocks(options)': { call: (options) => createLocks(memoryBackend(), options) },
  '@locks/core/renewal-thread: renewalThread(options)': {
    call: (options) => renewalThread(new URL(import.meta.url), options),
    valid: { maxBlockedMs: 1_000 },
  },
  '@locks/core: locked(options)': { call: (options) => locked(locks, 'a', work, options) },
  '@locks/core: Locked(options)': { call: (options) => Locked(locks, 'a', options) },
  'LockManager.lock(options)': { call: (options) => locks.lock('a', options) },
  'LockManager.readWriteLock(options)': { call: (options) => locks.readWriteLock('a', options) },
  'LockManager.semaphore(options)': { call: (options) => locks.semaphore('b', 3, options) },
  'LockManager.forceRelease(options)': { call: (options) => locks.forceRelease('a', options) },
  'LockManager.close(options)': { call: (options) => locks.close(options) },
  'LockManager.ping(options)': { call: (options) => locks.ping(options) },
  'Lock.acquire(options)': { call: (options) => lock.acquire(options) },
  'Lock.tryAcquire(options)': { call: (options) => lock.tryAcquire(options) },
  'Lock.run(options)': { call: (options) => lock.run(work, options) },
  'Semaphore.acquire(options)': { call: (options) => slots.acquire(options) },
  'Semaphore.tryAcquire(options)': { call: (options) => slots.tryAcquire(options) },
  'Semaphore.run(options)': { call: (options) => slots.run(work, options) },
  'MultiLock.acquire(options)': { call: (options) => set.acquire(options) },
  'MultiLock.tryAcquire(options)': { call: (options) => set.tryAcquire(options) },
  'MultiLock.run(options)': { call: (options) => set.run(work, options) },
  '@locks/quorum: quorumBackend(options)': {
    call: (options) => quorumBackend([memoryBackend()], options),
  },
  '@locks/core/lint: lintLocks(options)': { call: async (options) => lintLocks(options)() },
  '@locks/core/transfer: transfer(options)': {
    call: async (options) =>
      transfer(await fencedLocks.lock(`transferred ${randomUUID()}`).acquire(), options),
  },
  '@locks/core/transfer: adopt(ticket)': {
    call: (ticket) => adopt(fencedLocks, ticket),
    valid: { version: 1, name: 'a', acquisitionId: 'former', ttlMs: 1_000 },
  },
  '@locks/core/transfer: adopt(options)': {
    call: (options) =>
      adopt(fencedLocks, { version: 1, name: 'a', acquisitionId: 'former', ttlMs: 1_000 }, options),
  },
  '@locks/cohort: cohortBackend(options)': {
    call: (options) => cohortBackend(memoryBackend(), options),
  },
  '@locks/core/conformance: defineHarness(definition)': {
    call: (definition) => defineHarness(definition),
    valid: { module: import.meta.url, createBackend: () => memoryBackend() },
  },
  'Proxy.latency(scope)': { call: (scope) => onProxy((proxy) => proxy.latency(5, scope)) },
  'Proxy.blackhole(scope)': { call: (scope) => onProxy((proxy) => proxy.blackhole(scope)) },
  'Proxy.stall(scope)': { call: (scope) => onProxy((proxy) => proxy.stall(scope)) },
  '@locks/core/conformance: runConformance(options)': {
    call: (options) => runConformance(harness, options),
  },
  '@locks/core/conformance/node-test: testLockConformance(options)': {
    call: (options) => testWithNode(harness, options),
  },
  '@locks/core/conformance/vitest: testLockConformance(options)': {
    call: (options) => testWithVitest(harness, options),
  },
  '@locks/etcd: etcdBackend(client)': {
    call: (options) => etcdBackend(options),
    valid: { hosts: 'http://127.0.0.1:1' },
  },
  '@locks/etcd: etcdBackend(options)': {
    call: (options) => etcdBackend({ hosts: 'http://127.0.0.1:1' }, options),
  },
  '@locks/etcd/doctor: examineEtcd(client)': {
    call: (options) => examineEtcd(options),
    valid: { hosts: 'http://127.0.0.1:1' },
  },
  '@locks/etcd/doctor: examineEtcd(options)': { call: (options) => examineEtcd(etcd, options) },
  '@locks/etcd: etcdSlots(options)': { call: (options) => etcdSlots(etcd, options) },
  '@locks/etcd: etcdResults(options)': { call: (options) => etcdResults(etcd, options) },
  '@locks/etcd: clientOptions(options)': {
    call: (options) => clientOptions(options),
    valid: { hosts: 'http://127.0.0.1:1' },
  },
  ...onRecordStore(
    '@locks/kubernetes',
    { kubernetesBackend, kubernetesSlots, kubernetesResults },
    examineKubernetes,
    kubeConfig,
  ),
  'Election.lead(options)': { call: (options) => election(locks, 'a').lead(work, options) },
  'Election.watch(options)': { call: (options) => election(locks, 'a').watch(options) },
  ...onRecordStore(
    '@locks/dynamodb',
    { dynamodbBackend, dynamodbSlots, dynamodbResults },
    examineDynamodb,
    new DynamoDBClient({ region: 'eu-central-1' }),
    { table: 'locks' },
  ),
  ...onRecordStore(
    '@locks/s3',
    { s3Backend, s3Slots, s3Results },
    examineS3,
    new S3Client({ region: 'eu-central-1' }),
    { bucket: 'locks' },
  ),
  ...onRecordStore(
    '@locks/mongodb',
    { mongodbBackend, mongodbSlots, mongodbResults },
    examineMongodb,
    new MongoClient('mongodb://127.0.0.1:1').db('nowhere').collection('locks'),
  ),
  ...onRecordStore('@locks/nats', { natsBackend, natsSlots, natsResults }, examineNats, natsConnection),
  '@locks/mysql: mysqlBackend(options)': {
    call: (options) => mysqlBackend('mysql://nobody@127.0.0.1:1/nowhere', options),
  },
  '@locks/mysql/doctor: examineMysql(options)': {
    call: (options) => examineMysql('mysql://nobody@127.0.0.1:1/nowhere', options),
  },
  '@locks/mysql: mysqlSlots(options)': { call: (options) => mysqlSlots(mysqlPool, options) },
  '@locks/mysql: mysqlResults(options)': { call: (options) => mysqlResults(mysqlPool, options) },
  '@locks/mysql: schemaStatements(options)': { call: (options) => schemaStatements(options) },
  '@locks/nestjs: Locked(options)': { call: (options) => lockedInNest('a', options) },
  '@locks/nestjs: Once(options)': {
    call: (options) => Once('a', options),
    valid: { slot: day(), atMostMs: 1_000, retry: 'next-machine' },
  },
  '@locks/once: day(options)': { call: (options) => day(options) },
  '@locks/once: every(options)': { call: (options) => every(1_000, options) },
  '@locks/once: resetSlot(options)': {
    call: (options) => resetSlot(fencedLocks, 'a', options),
    valid: { slots: { read: work, write: work } },
  },
  '@locks/once: runCoordinator(options)': {
    call: (options) => runCoordinator(fencedLocks, options),
    valid: { slots: { read: work, write: work } },
  },
  '@locks/once: coalesce(options)': { call: (options) => coalesce(fencedLocks, 'a', work, options) },
  '@locks/once: newestWins(options)': { call: (options) => newestWins(fencedLocks, 'a', work, options) },
  '@locks/once: once(options)': {
    call: (options) => once(fencedLocks, 'a', work, options),
    valid: { slot: day(), atMostMs: 1_000, slots: { read: work, write: work }, retry: 'next-machine' },
  },
  '@locks/opentelemetry: meterLocks(options)': { call: (options) => meterLocks(options) },
  '@locks/opentelemetry: traceLocks(options)': { call: (options) => traceLocks(options) },
  '@locks/postgres: postgresLeaseBackend(options)': {
    call: (options) => postgresLeaseBackend(connectionString, options),
    valid: { listen: { url: connectionString } },
  },
  '@locks/postgres/doctor: examinePostgres(options)': {
    call: (options) => examinePostgres(connectionString, options),
    valid: { listen: { url: connectionString } },
  },
  '@locks/postgres: postgresAdvisoryBackend(options)': {
    call: (options) => postgresAdvisoryBackend(connectionString, options),
    valid: { fencing: { schema: 'locks' } },
  },
  ...onEveryDriver('@locks/postgres'),
  ...onEveryDriver('@locks/postgres/postgres-js'),
  '@locks/postgres/postgres-js: postgresLeaseBackend(options)': {
    call: (options) => onPostgresJs.postgresLeaseBackend(sql, options),
    valid: { listen: { url: connectionString } },
  },
  '@locks/postgres/postgres-js/doctor: examinePostgres(options)': {
    call: (options) => examineByPostgresJs(sql, options),
    valid: { listen: { url: connectionString } },
  },
  '@locks/postgres/postgres-js: postgresAdvisoryBackend(options)': {
    call: (options) => onPostgresJs.postgresAdvisoryBackend(sql, options),
    valid: { fencing: { schema: 'locks' } },
  },
  ...onEveryDriver('@locks/postgres/pglite'),
  '@locks/postgres/pglite: postgresLeaseBackend(options)': {
    call: (options) => onPglite.postgresLeaseBackend(pglite, options),
  },
  ...onEveryDriver('@locks/postgres/bun-sql'),
  '@locks/postgres/bun-sql: postgresLeaseBackend(options)': {
    call: (options) => onBunSql.postgresLeaseBackend(bunSql, options),
  },
  '@locks/redis-protocol/bun: redisBackend(options)': {
    call: (options) => onBunRedis(bunRedis, options),
  },
  '@locks/redis-glide: redisBackend(options)': {
    call: (options) => onGlide.redisBackend(glide, options),
  },
  '@locks/redis-glide: fencedSet(options)': {
    call: (options) => onGlide.fencedSet(glide, 'a', 'b', 1n, options),
  },
  '@locks/redis-glide: redisSlots(options)': {
    call: (options) => onGlide.redisSlots(glide, options),
  },
  '@locks/redis-glide: redisResults(options)': {
    call: (options) => onGlide.redisResults(glide, options),
  },
  '@locks/redis-ioredis: redisBackend(options)': {
    call: (options) => onIoredis.redisBackend(new Redis({ lazyConnect: true }), options),
  },
  '@locks/redis-ioredis: redisSlots(options)': {
    call: (options) => onIoredis.redisSlots(ioredis, options),
  },
  '@locks/redis-ioredis: redisResults(options)': {
    call: (options) => onIoredis.redisResults(ioredis, options),
  },
  '@locks/redis-node: redisSlots(options)': {
    call: (options) => onNodeRedis.redisSlots(nodeRedis, options),
  },
  '@locks/redis-node: redisResults(options)': {
    call: (options) => onNodeRedis.redisResults(nodeRedis, options),
  },
  '@locks/redis-protocol: redisSlotsThrough(options)': {
    call: (options) => redisSlotsThrough(noPort, options),
  },
  '@locks/redis-protocol: redisResultsThrough(options)': {
    call: (options) => redisResultsThrough(noPort, options),
  },
  '@locks/redis-ioredis: fencedSet(options)': {
    call: (options) => onIoredis.fencedSet(ioredis, 'a', 'b', 1n, options),
  },
  '@locks/redis-node: redisBackend(options)': {
    call: (options) => onNodeRedis.redisBackend(createClient(), options),
  },
  '@locks/redis-node: fencedSet(options)': {
    call: (options) => onNodeRedis.fencedSet(nodeRedis, 'a', 'b', 1n, options),
  },
  '@locks/prove: prove(options)': {
    call: (options) => prove(options),
    valid: { store: { module: 'file:///nowhere.mjs' } },
  },
  '@locks/record-protocol: createRecordBackend(options)': {
    call: (options) => createRecordBackend(new HttpRecordStore('127.0.0.1', 1), options),
  },
  '@locks/redis-protocol: createRedisBackend(options)': {
    call: (options) => createRedisBackend(noPort, options),
  },
  '@locks/redis-protocol: fencedSetThrough(options)': {
    call: (options) => fencedSetThrough(noPort, 'a', 'b', 1n, options),
  },
  '@locks/redisson: createRedissonBackend(options)': {
    call: (options) => createRedissonBackend(noPort, options),
  },
  '@locks/redisson/ioredis: redissonBackend(options)': {
    call: (options) => redissonOnIoredis(ioredis, options),
  },
  '@locks/redisson/redis: redissonBackend(options)': {
    call: (options) => redissonOnNodeRedis(nodeRedis, options),
  },
  '@locks/upstash: upstashBackend(options)': {
    call: (options) => upstashBackend(upstash, options),
  },
  '@locks/upstash: upstashBackend(database)': {
    call: (database) => upstashBackend(database),
    valid: upstash,
  },
  '@locks/upstash: fencedSet(options)': {
    call: (options) => fencedSetOnUpstash(upstash, 'a', 'b', 1n, options),
  },
  '@locks/upstash: fencedSet(database)': {
    call: (database) => fencedSetOnUpstash(database, 'a', 'b', 1n),
    valid: upstash,
  },
  '@locks/upstash: upstashSlots(options)': { call: (options) => upstashSlots(upstash, options) },
  '@locks/upstash: upstashSlots(database)': { call: (database) => upstashSlots(database), valid: upstash },
  '@locks/upstash: upstashResults(options)': { call: (options) => upstashResults(upstash, options) },
  '@locks/upstash: upstashResults(database)': {
    call: (database) => upstashResults(database),
    valid: upstash,
  },
  '@locks/history: checkTrace(options)': { call: (options) => checkTrace(parseTrace(''), options) },
  '@locks/history: recordTrace(options)': { call: (options) => recordTrace('trace.jsonl', options) },
  '@locks/file: fileBackend(options)': {
    call: (options) => fileBackend('nowhere', options),
  },
  '@locks/file: fileSlots(options)': { call: (options) => fileSlots('nowhere', options) },
  '@locks/file: fileResults(options)': { call: (options) => fileResults('nowhere', options) },
  '@locks/file/proper-lockfile: lock(options)': { call: (options) => lockfile.lock('package.json', options) },
  '@locks/file/proper-lockfile: unlock(options)': {
    call: (options) => lockfile.unlock('package.json', options),
  },
  '@locks/file/proper-lockfile: check(options)': {
    call: (options) => lockfile.check('package.json', options),
  },
  '@locks/file/proper-lockfile: lockSync(options)': {
    call: (options) => lockfile.lockSync('package.json', options),
  },
  '@locks/file/proper-lockfile: unlockSync(options)': {
    call: (options) => lockfile.unlockSync('package.json', options),
  },
  '@locks/file/proper-lockfile: checkSync(options)': {
    call: (options) => lockfile.checkSync('package.json', options),
  },
  '@locks/file/doctor: examineFile(options)': {
    call: (options) => examineFile('nowhere', options),
  },
  '@locks/sqlite: sqliteBackend(options)': {
    call: (options) => sqliteBackend('nowhere.db', options),
  },
  '@locks/sqlite/doctor: examineSqlite(options)': {
    call: (options) => examineSqlite('nowhere.db', options),
  },
  '@locks/web-locks: webLocks(options)': { call: (options) => webLocks(memoryBackend(), options) },
  ...onZookeeper('@locks/zookeeper', { zookeeperBackend, zookeeperSlots, zookeeperResults }, {}),
  '@locks/zookeeper/doctor: examineZookeeper(options)': {
    call: (options) => examineZookeeper('127.0.0.1:1', options),
  },
  ...onZookeeper('@locks/zookeeper/native', onNativeZookeeper, { library: class {} }),
};

/** Parameters that look like options, and why their names are not checked. */
export const notOptions: Readonly<Record<string, string>> = {
  'WebLocks.request(options)': 'Web IDL: what a dictionary does not know is ignored',
  '@locks/core/backend: areInConflict(one)': 'a mode',
  '@locks/core/backend: areInConflict(other)': 'a mode',
  '@locks/core/backend: grantFault(capabilities)': 'what a backend declares',
  '@locks/core/backend: grantFault(grant)': 'what a backend granted',
  '@locks/core/backend: holdsAlone(mode)': 'a mode, which core has checked',
  'NetworkFaults.addLatency(scope)': 'what Proxy.latency() calls',
  'NetworkFaults.addBlackhole(scope)': 'what Proxy.blackhole() calls',
  'NetworkFaults.addStall(scope)': 'what Proxy.stall() calls',
  '@locks/core/conformance/proxy: startProxy(target)': 'an address',
  'Harness.createLocks(options)': 'createLocks() of core',
  'SlotStore.write(entry)': 'an entry of a slot store',
  '@locks/core/backend: slotEntryText(entry)': 'an entry of a slot store',
  '@locks/core/doctor: oldVersion(versions)': 'what adapters know of their servers',
  '@locks/record-protocol/table: decodeState(__0)': 'a row',
  '@locks/record-protocol/table: encodeSole(mode)': 'a mode',
  '@locks/record-protocol/table: encodeState(state)': 'a row',
  '@locks/record-protocol/table: timesFromWrite(__0)': 'a hold',
  '@locks/record-protocol/table: untilFromWrite(__0)': 'a hold with its times',
  '@locks/record-protocol: clockOf(__0)': 'options that were checked',
  '@locks/record-protocol: escapeKey(alphabet)': 'the keys that a server allows',
  '@locks/record-protocol: mayStartWith(alphabet)': 'the keys that a server allows',
  '@locks/redis-protocol/kit: runScript(script)': 'a script',
  '@locks/web-locks: leaseOf(lock)': 'a lock',
  '@locks/core/conformance: runCase(testCase)': 'a case of the suite',
  '@locks/core/conformance: writeReport(report)': 'a report of the suite',
  '@locks/history: checkTrace(trace)': 'what readTrace() gave',
  '@locks/prove: proofPage(proof)': 'what prove() gave',
  '@locks/prove: proofText(proof)': 'what prove() gave',
  ...Object.fromEntries(
    [
      ': reportOf(harness)',
      ': runCase(harness)',
      ': runConformance(harness)',
      ': startHarness(harness)',
      '/node-test: testLockConformance(harness)',
      '/vitest: testLockConformance(harness)',
    ].map((key) => [`@locks/core/conformance${key}`, 'what defineHarness() gave']),
  ),
};
