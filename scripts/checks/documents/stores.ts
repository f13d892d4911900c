/** What is told of a store. The rest comes from docs/compatibility.md, docs/support.md and the adapters: see `store-tables.ts`. */
export interface Store {
  readonly name: string;
  readonly page: string;
  /** Its backends in docs/compatibility.md. */
  readonly backends: RegExp;
  /** Tokens come only with this option. */
  readonly tokenOption?: string;
  /** Products in docs/support.md; none for a store without a server. */
  readonly tested: readonly string[];
  /** Tested only on the versions that the tests start. */
  readonly isTestedOnStarted?: true;
  /** How a waiter learns of its turn. */
  readonly push: string;
  /** When the lock of a crashed holder is free, or the package whose clock says how long after the ttl that is. */
  readonly crash: string | { readonly clockOf: string };
  readonly failover: string;
  /** What an operator sets for a failover. */
  readonly set: string;
  readonly requests: string;
  readonly needs: string;
  /** The order of `query()` of Web Locks, where it has one. */
  readonly listed?: string;
}

const REST_OF_TTL = 'ttl';
const LOSES_GRANTS = 'may lose grants';
const LOSES_ASYNCHRONOUS = 'may lose grants if asynchronous';
const ELECTION = 'an election';
const UNTRIED_ELECTION = 'an election; not tried';
const REDIS_SETTINGS =
  '`maxmemory-policy noeviction`, persistence, `socketTimeout` of the client; outside a Cluster `minReplicas`';

/** A row in each table of stores, in this order. */
export const STORES: readonly Store[] = [
  {
    name: 'memory',
    page: 'packages/memory',
    backends: /^memory$/,
    tested: [],
    push: 'at once',
    crash: 'ends with the process',
    failover: 'none: one process',
    set: 'nothing',
    requests: 'none',
    needs: 'nothing',
    listed: 'as they came into use',
  },
  {
    name: 'SQLite',
    page: 'docs/backends/sqlite.md',
    backends: /^sqlite$/,
    tested: [],
    push: 'watched file, else polling from 1 ms',
    crash: REST_OF_TTL,
    failover: 'none: one machine',
    set: 'a local disk',
    requests: '2 transactions',
    needs: 'Node ≥ 22.13, a local file',
    listed: 'sorted',
  },
  {
    name: 'files',
    page: 'docs/backends/file.md',
    backends: /^file(-poll)?$/,
    tested: [],
    push: 'watched file, else polling from 1 ms',
    crash: REST_OF_TTL,
    failover: 'none: one machine',
    set: 'a local disk',
    requests: '4 calls of the file system',
    needs: 'a local folder',
  },
  {
    name: 'Redis, Valkey',
    page: 'docs/backends/redis.md',
    backends: /^redis-/,
    tested: ['Redis', 'Valkey'],
    push: 'pushed hand-off',
    crash: REST_OF_TTL,
    failover: LOSES_GRANTS,
    set: REDIS_SETTINGS,
    requests: '2 requests',
    needs: 'Redis ≥ 6.2 or Valkey ≥ 8',
  },
  {
    name: 'Redisson',
    page: 'docs/backends/redisson.md',
    backends: /^redisson/,
    tokenOption: 'fencing',
    tested: ['Redisson', 'Redis'],
    isTestedOnStarted: true,
    push: 'message',
    crash: REST_OF_TTL,
    failover: LOSES_GRANTS,
    set: REDIS_SETTINGS,
    requests: '2 requests',
    needs: 'Redis as above, for locks shared with Java',
  },
  {
    name: 'Upstash',
    page: 'docs/backends/upstash.md',
    backends: /^upstash$/,
    tested: ['Upstash'],
    push: 'polling 500 ms',
    crash: REST_OF_TTL,
    failover: LOSES_GRANTS,
    set: 'nothing',
    requests: '2 commands',
    needs: 'REST API of Upstash',
  },
  {
    name: 'PostgreSQL leases',
    page: 'docs/backends/postgres.md',
    backends: /^(pglite|postgres(-js)?-lease.*)$/,
    tested: ['PostgreSQL'],
    push: '`NOTIFY` hand-off',
    crash: REST_OF_TTL,
    failover: LOSES_ASYNCHRONOUS,
    set: 'synchronous replication, `synchronous_commit = on`, `connectionTimeoutMillis` of the pool',
    requests: '2 statements',
    needs: 'PostgreSQL ≥ 12, a schema; works through poolers',
    listed: 'sorted',
  },
  {
    name: 'PostgreSQL advisory locks',
    page: 'docs/backends/postgres-advisory.md',
    backends: /^postgres(-js)?-advisory$/,
    tokenOption: 'fencing',
    tested: ['PostgreSQL'],
    push: "the server's own queue",
    crash: 'at once; frozen or cut off: 10 to 15 s',
    failover: 'ends all locks; holders are told',
    set: 'direct connections, option `fencing`',
    requests: '2 statements',
    needs: 'PostgreSQL ≥ 14, own sessions; no transaction pooler',
  },
  {
    name: 'MySQL, MariaDB',
    page: 'docs/backends/mysql.md',
    backends: /^mysql$/,
    tested: ['MariaDB', 'MySQL'],
    push: 'polling from 10 ms',
    crash: REST_OF_TTL,
    failover: LOSES_ASYNCHRONOUS,
    set: '`innodb_flush_log_at_trx_commit = 1`, semi-synchronous replication (`AFTER_SYNC`)',
    requests: '2 statements',
    needs: 'MariaDB ≥ 10.5 or MySQL ≥ 8.0, a writable primary, three tables',
    listed: 'sorted',
  },
  {
    name: 'ZooKeeper',
    page: 'docs/backends/zookeeper.md',
    backends: /^zookeeper/,
    tested: ['ZooKeeper'],
    push: 'watch of the predecessor',
    crash: 'session, 10 s by default',
    failover: ELECTION,
    set: 'three or five members',
    requests: '4 requests in 2 round trips',
    needs: 'ZooKeeper ≥ 3.5',
  },
  {
    name: 'etcd',
    page: 'docs/backends/etcd.md',
    backends: /^etcd/,
    tested: ['etcd'],
    push: 'watch of the predecessor',
    crash: 'ttl + 1 s',
    failover: ELECTION,
    set: 'three or five members',
    requests: '2 calls in 2 round trips; 3 after a pause',
    needs: 'etcd ≥ 3.4; ttl in whole seconds',
    listed: 'sorted',
  },
  {
    name: 'DynamoDB',
    page: 'docs/backends/dynamodb.md',
    backends: /^dynamodb$/,
    tested: ['DynamoDB'],
    push: 'polling 10 ms to 1 s',
    crash: { clockOf: 'dynamodb' },
    failover: 'not tried',
    set: 'one region, or a global table with strong consistency',
    requests: '2 requests',
    needs: 'a table of DynamoDB',
  },
  {
    name: 'S3',
    page: 'docs/backends/s3.md',
    backends: /^s3/,
    tested: ['S3'],
    push: 'polling 25 ms to 2 s',
    crash: { clockOf: 's3' },
    failover: 'not tried',
    set: 'one region',
    requests: '2 requests',
    needs: 'a bucket whose provider honours `If-None-Match` and `If-Match`',
  },
  {
    name: 'NATS',
    page: 'docs/backends/nats.md',
    backends: /^nats/,
    tested: ['NATS'],
    push: 'pushed hint',
    crash: { clockOf: 'nats' },
    failover: 'an election, where writes are synced',
    set: 'three replicas, `sync_interval: always`',
    requests: '2 requests',
    needs: 'NATS ≥ 2.11 with JetStream, `sync_interval: always`',
  },
  {
    name: 'MongoDB',
    page: 'docs/backends/mongodb.md',
    backends: /^mongodb$/,
    tested: ['MongoDB'],
    push: 'change stream, else polling',
    crash: { clockOf: 'mongodb' },
    failover: UNTRIED_ELECTION,
    set: 'a replica set of three',
    requests: '2 requests',
    needs: 'MongoDB ≥ 4.4',
  },
  {
    name: 'Kubernetes',
    page: 'docs/backends/kubernetes.md',
    // The matrix has no column of what is built by hand. All stores of records declare the same.
    backends: /^mongodb$/,
    tested: ['Kubernetes'],
    push: 'watch',
    crash: { clockOf: 'kubernetes' },
    failover: UNTRIED_ELECTION,
    set: "that of the cluster's etcd",
    requests: '2 to 3 requests',
    needs: 'Kubernetes ≥ 1.19, a Role',
  },
  {
    name: 'quorum',
    page: 'docs/backends/quorum.md',
    backends: /^quorum-/,
    tested: ['Redis'],
    isTestedOnStarted: true,
    push: 'polling 20 to 50 ms',
    crash: 'as its nodes',
    failover: 'nothing, while a majority answers',
    set: 'persistence, or keep a restarted node away for the longest ttl',
    requests: '2 for each node',
    needs: 'an odd number of independent stores',
  },
];
