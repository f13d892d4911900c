import { CreateTableCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { pathToFileURL } from 'node:url';
import { createLocks, type LockManager } from '@locks/core';
import { redisBackend } from '@locks/redis-ioredis';
import {
  type RedisServer,
  startDynamodb,
  startEtcd,
  startMariadb,
  startMongodb,
  startMoto,
  startNats,
  startPostgres,
  startRedis,
  startZookeeper,
} from '@locks/test-servers';
import { Redis } from 'ioredis';
import { afterAll, beforeAll } from 'vitest';
import { folder } from './program.ts';

/** A store of a test's own, as a user of the command names it. */
export interface StartedStore extends AsyncDisposable {
  readonly url: string;
}

export type StoreName =
  | 'redis'
  | 'sqlite'
  | 'file'
  | 'postgres'
  | 'mysql'
  | 'etcd'
  | 'zookeeper'
  | 'dynamodb'
  | 's3'
  | 'nats'
  | 'mongodb';

// The SDK of AWS takes its credentials from the environment, also in the processes of the tests. The servers take any.
process.env['AWS_ACCESS_KEY_ID'] = 'local';
process.env['AWS_SECRET_ACCESS_KEY'] = 'local';

const START: Readonly<Record<StoreName, () => Promise<[url: string, stop?: () => Promise<unknown>]>>> = {
  async redis() {
    const server = await startRedis();
    return [server.url, () => server.stop()];
  },
  async sqlite() {
    return [`sqlite:${folder()}/locks.db`];
  },
  async file() {
    return [pathToFileURL(folder()).href];
  },
  async postgres() {
    const server = await startPostgres();
    return [server.url, () => server.stop()];
  },
  async mysql() {
    const server = await startMariadb();
    return [server.urlOf('app'), () => server.stop()];
  },
  async etcd() {
    const server = await startEtcd();
    return [`etcd://${server.url.replace('http://', '')}`, () => server.stop()];
  },
  async zookeeper() {
    const server = await startZookeeper();
    return [`zookeeper://${server.address}`, () => server.stop()];
  },
  async dynamodb() {
    const server = await startDynamodb();
    await makeTable(server.url, 'locks');
    return [`dynamodb://eu-central-1/locks?endpoint=${server.url}`, () => server.stop()];
  },
  async s3() {
    const server = await startMoto();
    await makeBucket(server.url, 'my-locks');
    return [`s3://my-locks?endpoint=${server.url}`, () => server.stop()];
  },
  async nats() {
    const server = await startNats();
    return [`${server.url}/locks`, () => server.stop()];
  },
  async mongodb() {
    const server = await startMongodb();
    const url = new URL(server.url);
    url.pathname = '/app';
    url.searchParams.set('collection', 'command');
    return [url.href, () => server.stop()];
  },
};

export async function makeTable(endpoint: string, table: string, key = 'key'): Promise<void> {
  const client = new DynamoDBClient({ endpoint, region: 'eu-central-1' });
  const command = new CreateTableCommand({
    TableName: table,
    KeySchema: [{ AttributeName: key, KeyType: 'HASH' }],
    AttributeDefinitions: [{ AttributeName: key, AttributeType: 'S' }],
    BillingMode: 'PAY_PER_REQUEST',
  });
  await client.send(command).finally(() => client.destroy());
}

export async function makeBucket(endpoint: string, bucket: string): Promise<void> {
  const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true });
  await client.send(new CreateBucketCommand({ Bucket: bucket })).finally(() => client.destroy());
}

const missing = new Set(process.env['LOCKS_MISSING_SERVERS']?.split(','));
/** Without those whose server cannot be brought here. */
export const STORE_NAMES = (Object.keys(START) as StoreName[]).filter((name) => !missing.has(name));

export async function startStore(name: StoreName): Promise<StartedStore> {
  const [url, stop] = await START[name]();
  return {
    url,
    async [Symbol.asyncDispose]() {
      await stop?.();
    },
  };
}

/** A Redis for all tests of the file or of the suite that calls this, with a client and a manager of the tests. */
export class TestRedis {
  #server: RedisServer | undefined;
  #client: Redis | undefined;
  #manager: LockManager | undefined;

  constructor() {
    beforeAll(async () => {
      this.#server = await startRedis();
      this.#client = new Redis(this.#server.url);
      this.#manager = createLocks(redisBackend(this.#client));
    });
    afterAll(async () => {
      await this.#manager?.close();
      this.#client?.disconnect();
      await this.#server?.stop();
    });
  }

  get url(): string {
    return started(this.#server).url;
  }

  get client(): Redis {
    return started(this.#client);
  }

  get locks(): LockManager {
    return started(this.#manager);
  }

  /** The names that somebody holds or waits for. */
  async used(): Promise<string[]> {
    const names: string[] = [];
    for await (const { name } of this.locks.list()) names.push(name);
    return names;
  }
}

function started<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('Redis is started before the first test');
  return value;
}
