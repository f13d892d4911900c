import {
  startDynamodb,
  startEtcd,
  startMariadb,
  startMongodb,
  startMoto,
  startNats,
  startPostgres,
  startRedis,
  startSeaweedfs,
  startZookeeper,
} from '@locks/test-servers';

/** A server that one demo uses. */
export interface DemoServer {
  /** A URL; for ZooKeeper a connect string. */
  readonly at: string;
  /** In words. */
  readonly place: string;
  stop(): Promise<void>;
}

interface Kind {
  /** By which the user names a server of his own. */
  readonly variable: string;
  readonly program: string;
  start(): Promise<{ readonly at: string; stop(): Promise<void> }>;
}

const kinds = {
  redis: { variable: 'REDIS_URL', program: 'redis-server', start: async () => withUrl(await startRedis()) },
  postgres: {
    variable: 'POSTGRES_URL',
    program: 'PostgreSQL',
    start: async () => withUrl(await startPostgres()),
  },
  mysql: { variable: 'MYSQL_URL', program: 'MariaDB', start: async () => withUrl(await startMariadb()) },
  zookeeper: {
    variable: 'ZOOKEEPER_URL',
    program: 'ZooKeeper',
    async start() {
      const server = await startZookeeper();
      return { at: server.address, stop: () => server.stop() };
    },
  },
  etcd: { variable: 'ETCD_URL', program: 'etcd', start: async () => withUrl(await startEtcd()) },
  dynamodb: {
    variable: 'DYNAMODB_URL',
    program: 'DynamoDB Local',
    start: async () => withUrl(await startDynamodb()),
  },
  s3: { variable: 'S3_URL', program: 'moto', start: async () => withUrl(await startMoto()) },
  seaweedfs: {
    variable: 'SEAWEEDFS_URL',
    program: 'SeaweedFS',
    start: async () => withUrl(await startSeaweedfs()),
  },
  nats: { variable: 'NATS_URL', program: 'NATS', start: async () => withUrl(await startNats()) },
  mongodb: {
    variable: 'MONGODB_URL',
    program: 'mongo-java-server',
    start: async () => withUrl(await startMongodb()),
  },
} as const satisfies Record<string, Kind>;

export type ServerKind = keyof typeof kinds;

function withUrl(server: {
  readonly url: string;
  stop(): Promise<void>;
}): Awaited<ReturnType<Kind['start']>> {
  return { at: server.url, stop: () => server.stop() };
}

/** The user's own server, or a private one that ends with the demo. */
export async function serverOf(kind: ServerKind): Promise<DemoServer> {
  const { variable, program, start }: Kind = kinds[kind];
  const url = process.env[variable];
  if (url !== undefined && url !== '')
    return { at: url, place: `the server of ${variable}`, stop: async () => {} };
  return { ...(await start()), place: `a private ${program}` };
}
